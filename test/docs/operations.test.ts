import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isRoot } from '../helpers/stage.ts'
import { outputsOf, patternOf, type Session, scriptFor, sessionsOf } from './console.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const sessions = sessionsOf(fs.readFileSync(`${ROOT}/docs/operations.md`, 'utf8'))
const title = `a section of the page of operations${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

it('reads what is typed, what is shown, and what is not', () => {
  const page = '# Page\n\n## One\n\n<!-- stage: a -->\n```console\n# b \\\n  -c\nshown …\n# d\n```\n\n## Two\n'
  expect(sessionsOf(page)).toEqual([
    {
      heading: 'One',
      steps: [
        { command: 'a', shown: undefined },
        { command: 'b \\\n  -c', shown: 'shown …\n' },
        { command: 'd', shown: '' },
      ],
    },
    { heading: 'Two', steps: [] },
  ])
  expect('a  b\nc 17 d\nx\ny\nend\n').toMatch(patternOf('a b\nc … d\n…\nend\n'))
  expect('a b\nmore\n').not.toMatch(patternOf('a b\n'))
})

describe.skipIf(!isRoot)(title, () => {
  it.each(sessions.filter(({ steps }) => steps.length > 0))('$heading: prints what it shows', ({ steps }) => {
    const outputs = play(steps)
    expect(outputs).toHaveLength(steps.length)
    for (const [index, { command, shown }] of steps.entries()) {
      expect(outputs[index], command).toMatch(patternOf(shown ?? ''))
    }
  })
})

/** On a node of its own. What the page does not show has to be silent. */
function play(steps: Session['steps']): string[] {
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-page-`)
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  fs.mkdirSync(`${directory}/node`)
  fs.writeFileSync(`${directory}/script.sh`, scriptFor(steps))
  const node = ['sh', join(import.meta.dirname, 'node.sh'), ROOT, `${directory}/node`, `${directory}/script.sh`]
  const apart = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private']
  const { stdout, stderr, error } = spawnSync('unshare', [...apart, ...node], { encoding: 'utf8', timeout: 100_000 })
  if (error) throw error
  expect(stderr).toBe('')
  return outputsOf(stdout)
}
