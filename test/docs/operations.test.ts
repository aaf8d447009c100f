import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { patternOf, sessionsOf } from './console.ts'
import { ROOT } from './pages.ts'
import { play } from './play.ts'

const sessions = sessionsOf(fs.readFileSync(join(ROOT, 'docs/operations.md'), 'utf8'))
const title = `a section of the page of operations${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

it('a session in a page is split into commands, expected output, and skipped output', () => {
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
  it.each(sessions.filter(({ steps }) => steps.length > 0))(
    'the commands in section "$heading" of the operations page print the shown output',
    ({ steps }) => {
      const commands = steps.map(({ command }) => command).join('\n')
      for (const [, program = ''] of commands.matchAll(/fsType=fuse\.(\w+)/g)) requireProgram(program)
      const outputs = play(steps)
      expect(outputs).toHaveLength(steps.length)
      for (const [index, { command, shown }] of steps.entries()) {
        // What the page does not show has to be silent.
        expect(outputs[index], command).toMatch(patternOf(shown ?? ''))
      }
    },
  )
})
