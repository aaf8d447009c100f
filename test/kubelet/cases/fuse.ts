import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { Daemon } from '../node/daemon.ts'
import { INSTALLED } from '../node/drivers.ts'
import type { TestNode } from '../node/node.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'

const volume: Case = {
  name: 'a volume of a FUSE daemon stays over three kubelet restarts, in one mount, and ends with its pod',
  when: 'restarts',
  async run({ node, threeRestarts }) {
    const source = `${node.volumes}/served`
    fs.mkdirSync(source)
    fs.chmodSync(source, 0o775)
    fs.writeFileSync(`${source}/file`, 'served')
    const wish = { name: 'served', driver: 'modekeep', fsType: 'fuse.bindfs', fsGroup: 2000, user: 1000 } as const
    const pod = await node.run({ ...wish, options: { source, mountOptions: 'force-group=2000' } })
    const [before] = daemonsOf(pod.uid)
    await threeRestarts(pod)
    const { text } = await pod.exec('cat /data/file && echo of the pod > /data/new && stat -c %g /data/new')
    const layers = pod.layers().filter(({ fsType }) => fsType.startsWith('fuse')).length
    const after = daemonsOf(pod.uid)
    await node.remove(pod)
    await until('its daemon has ended', () => daemonsOf(pod.uid).length === 0)
    assert.equal(text.replaceAll('\n', ' '), 'served2000')
    assert.equal(fs.readFileSync(`${source}/new`, 'utf8'), 'of the pod\n')
    assert.deepEqual([layers, after], [1, [before]])
    return { modekeep: 'reads and writes, 1 mount, the same daemon; gone with the pod' }
  },
}

/** Daemons of bindfs: the run's own pid namespace has no others, and one pod's is asked for at a time. */
export function daemonsOf(_uid: string): string[] {
  return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && /(^|\/)bindfs\0/.test(commandLine(pid)))
}

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

const MOUNT =
  'test -c /dev/fuse || { echo there is no /dev/fuse; exit 1; }; exec 9<>/dev/fuse && mkdir /mine && mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 mine /mine && grep -c " /mine fuse" /proc/mounts'

const device: Case = {
  name: 'with the device plugin an unprivileged pod mounts FUSE, again after a kubelet restart',
  when: 'alone',
  async run({ node }) {
    const plugin = new Daemon('device-plugin', node.elsewhere, [INSTALLED, 'device-plugin'], process.env)
    plugin.start()
    try {
      await registered(plugin, 1)
      const without = await tryFuse(node, 'no-device', {})
      const first = await tryFuse(node, 'device', { limits: { 'modekeep/fuse': '1' } })
      await node.restartKubelet('SIGKILL', [])
      await registered(plugin, 2)
      const second = await tryFuse(node, 'device-again', { limits: { 'modekeep/fuse': '1' } })
      assert.deepEqual([first, second], ['1', '1'])
      assert.notEqual(without, '1')
      return {
        modekeep: 'mounted; after the restart: mounted',
        naive: `without the resource: ${without.split('\n')[0]}`,
      }
    } finally {
      await plugin.stop('SIGTERM')
    }
  },
}

async function registered(plugin: Daemon, times: number): Promise<void> {
  await until('the device plugin is registered', () => {
    plugin.mustRun()
    return (
      plugin
        .log()
        .split('\n')
        .filter((line) => line.includes('"event":"registered"')).length >= times
    )
  })
}

/** What a container with SYS_ADMIN and these resources gets when it mounts a FUSE file system: `1`, or an error. */
async function tryFuse(node: TestNode, name: string, resources: object): Promise<string> {
  const source = `${node.volumes}/${name}`
  fs.mkdirSync(source)
  const container = { resources, securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }
  const pod = await node.run({ name, driver: 'modekeep', options: { source }, container })
  const { text } = await pod.exec(MOUNT)
  await node.remove(pod)
  return text
}

export const FUSE = [volume, device]
