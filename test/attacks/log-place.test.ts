import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = !isRoot
  ? 'mounts need root; run "sudo npm test"'
  : !fs.existsSync(BINARY)
    ? 'run "npm run build"'
    : ''

const USER = 1000

/** What a member of the group of /var/log, as Debian and Ubuntu have it, may put in the place of the log. */
const ATTACKS: Record<string, (log: string, target: string) => void> = {
  'a link to a file of root': (log, target) => fs.symlinkSync(target, log),
  'a hard link to a file of root': (log, target) => fs.linkSync(target, log),
  'a FIFO': (log) => void execFileSync('mkfifo', [log]),
  'a file of another user': (log) => {
    fs.writeFileSync(log, '')
    fs.chownSync(log, USER, USER)
  },
  'a link in place of its directory': (log, target) => {
    fs.rmdirSync(dirname(log))
    fs.symlinkSync(dirname(target), dirname(log))
  },
  "another user's directory": (log) => fs.chownSync(dirname(log), USER, USER),
}

function attackedNode(attack: string) {
  const node = new BinaryNode()
  const logs = `${node.top}/logs`
  const log = `${logs}/modekeep/modekeep.log`
  const target = `${node.top}/etc/ld.so.preload`
  for (const directory of [`${node.top}/etc`, dirname(log), `${node.volumes}/data`]) {
    fs.mkdirSync(directory, { recursive: true })
  }
  fs.chownSync(logs, 0, USER)
  fs.chmodSync(logs, 0o775)
  fs.writeFileSync(target, 'precious')
  node.configure({ logFile: log })
  ATTACKS[attack]?.(log, target)
  const files = () =>
    fs.readdirSync(`${node.top}/etc`).map((name) => fs.readFileSync(`${node.top}/etc/${name}`, 'utf8'))
  return { node, log, files }
}

describe.skipIf(skipReason !== '')(addSkipReason('a log that users other than root can replace', skipReason), () => {
  it.each(Object.keys(ATTACKS))(
    'is not written or waited for, and mounts, unmounts and heal succeed: %s',
    async (attack) => {
      const { node, files } = attackedNode(attack)
      const directory = node.podDirectory('a')
      const call = async (...args: string[]) => {
        const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
        const { stdout, exitCode } = await execa(BINARY, args, { env, reject: false, timeout: 20_000 })
        return { exitCode, stdout }
      }
      const request = JSON.stringify({ source: `${node.volumes}/data`, 'kubernetes.io/pod.name': '\n/tmp/evil.so\n' })
      expect(JSON.parse((await call('mount', directory, request)).stdout)).toMatchObject({ status: 'Success' })
      expect((await call('heal')).exitCode).toBe(0)
      expect((await call('status', '--prometheus')).exitCode).toBe(0)
      expect(JSON.parse((await call('unmount', directory)).stdout)).toMatchObject({ status: 'Success' })
      expect(node.layers('a')).toEqual([])
      expect(files()).toEqual(['precious'])
      if (attack === 'a FIFO') {
        const { exitCode, stdout } = await call('logs', '--json')
        expect([exitCode, stdout]).toEqual([1, expect.stringContaining("this is not modekeep's log")])
      }
    },
  )

  it('is written if others can write only above its directory, which belongs to root', async () => {
    const { node, log } = attackedNode('none')
    await node.call('mount', node.podDirectory('a'), JSON.stringify({ source: `${node.volumes}/data` }))
    await node.call('unmount', node.podDirectory('a'))
    expect(fs.readFileSync(log, 'utf8').trim().split('\n')).toHaveLength(2)
  })
})

describe.skipIf(skipReason !== '')(addSkipReason('an exported journal', skipReason), () => {
  it.each<[string, (file: string) => void]>([
    ['of another user', (file) => fs.chownSync(file, USER, USER)],
    ['that others can write', (file) => fs.chmodSync(file, 0o666)],
  ])('%s is imported with --force only', async (_what, prepare) => {
    const node = new BinaryNode()
    const data = `${node.volumes}/data`
    const file = `${node.top}/data.journal`
    fs.mkdirSync(data)
    fs.writeFileSync(`${data}/file`, '')
    const run = async (...args: string[]) => {
      const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
      const { exitCode, all } = await execa(BINARY, args, { env, all: true, reject: false, timeout: 20_000 })
      return { exitCode, all }
    }
    expect((await run('apply', data, '--fsgroup', '2000')).exitCode).toBe(0)
    expect((await run('journal', 'export', data, '--output', file)).exitCode).toBe(0)
    fs.renameSync(node.state, `${node.top}/other-node`)
    prepare(file)
    const refused = await run('journal', 'import', file)
    expect([refused.exitCode, refused.all]).toEqual([
      1,
      expect.stringContaining('can be written by users other than root'),
    ])
    expect(await run('journal', 'import', file, '--force')).toMatchObject({ exitCode: 0 })
  })
})
