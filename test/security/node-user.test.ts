import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { listTree, makeTree } from '../helpers/tree.ts'

const why = !isRoot ? 'mounts need root; run "sudo npm test"' : !fs.existsSync(BINARY) ? 'run "npm run build"' : ''

/** Runs a program as an ordinary user of the node. */
function asUser(...[program = '', ...args]: string[]) {
  const { status, stdout, stderr } = spawnSync(
    'setpriv',
    ['--reuid', '65534', '--regid', '65534', '--clear-groups', program, ...args],
    {
      encoding: 'utf8',
      timeout: 600_000,
    },
  )
  return { status, stdout, stderr }
}

/** A node with a walked volume mounted in a pod, whose directories others may enter down to modekeep's own. */
async function mountedNode() {
  const node = new BinaryNode()
  fs.chmodSync(node.top, 0o755)
  const source = `${node.volumes}/data`
  makeTree(fs, source, ['file plain 0640'])
  const options = {
    source,
    ownership: 'walk',
    'kubernetes.io/fsGroup': '2000',
  }
  expect(await node.call('mount', node.podDirectory('a'), JSON.stringify(options))).toEqual({ status: 'Success' })
  onTestFinished(async () => void (await node.call('unmount', node.podDirectory('a'))))
  return { node, source }
}

describe.skipIf(why !== '')(`a user of the node${why && ` (skipped: ${why})`}`, () => {
  it('cannot read records, journals and the log, and cannot open a lock', async () => {
    const { node } = await mountedNode()
    const files = fs.readdirSync(node.state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = [...files.map((entry) => `${entry.parentPath}/${entry.name}`), node.log]
    // A record, a journal, a lock, the log.
    for (const name of [/record\.json$/, /journal\.db$/, /lock$/, /\.log$/])
      expect(paths.some((path) => name.test(path))).toBe(true)
    for (const path of paths) {
      expect({ path, ...asUser('cat', path) }).toMatchObject({
        path,
        status: 1,
        stdout: '',
        stderr: expect.stringContaining('Permission denied'),
      })
    }
    for (const path of [node.state, `${node.state}/mounts`, `${node.state}/ownership`])
      expect(asUser('ls', path)).toMatchObject({ stdout: '' })
  })

  it("cannot run kubelet's calls or an operator's commands", async () => {
    const { node, source } = await mountedNode()
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-user-`)
    onTestFinished(() => fs.rmSync(directory, { recursive: true }))
    const program = `${directory}/modekeep`
    fs.chmodSync(directory, 0o777)
    fs.copyFileSync(BINARY, program, fs.constants.COPYFILE_FICLONE)
    const call = (...args: string[]) => asUser('env', `MODEKEEP_CONFIG=${node.top}/config.json`, program, ...args)
    const before = listTree(fs, source)
    const layers = node.layers('a')
    for (const args of [
      ['mount', directory, JSON.stringify({ source })],
      ['unmount', node.podDirectory('a')],
    ]) {
      expect(JSON.parse(call(...args).stdout)).toEqual({ status: 'Failure', message: expect.any(String) })
    }
    for (const args of [['apply', source, '--fsgroup', '65534'], ['restore', source], ['heal'], ['status']]) {
      expect(call(...args)).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('needs root') })
    }
    expect(listTree(fs, source)).toEqual(before)
    expect(node.layers('a')).toEqual(layers)
  })

  it('finds no secret in copies of the state directory and the log', async () => {
    const { node, source } = await mountedNode()
    // A bind takes no Secret: the call fails, and is logged.
    const options = { source, 'kubernetes.io/secret/token': 'aHVudGVyMmh1bnRlcjI=' }
    const reply = await node.call('mount', node.podDirectory('b'), JSON.stringify(options))
    expect(reply).toMatchObject({ status: 'Failure', message: expect.stringContaining('"token"') })
    const files = fs.readdirSync(node.state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const stolen = [...files.map((entry) => `${entry.parentPath}/${entry.name}`), node.log].map((path) =>
      fs.readFileSync(path, 'latin1'),
    )
    expect(stolen.join('\n')).toContain('"given":{"by":"walk","group":2000')
    expect(stolen.join('\n')).not.toMatch(/aHVudGVyMmh1bnRlcjI|hunter2hunter2/)
  })
})
