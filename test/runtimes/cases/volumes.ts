import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { expect } from '../expect.ts'
import { type DiskType, diskVolume, fill } from '../node/disks.ts'
import type { RuntimeNode } from '../node/node.ts'
import { EmptyDir, HostPath, LocalVolume, Projected, type Volume } from '../node/volumes.ts'
import type { Case } from './case.ts'
import { clonesOnNode, GROUP, groupsSeen, mustBeUntouched, mustWrite, OPTIONAL, refusal } from './seen.ts'

const DATA = [{ name: 'data', mountPath: '/data' }]

const onDisk = (type: DiskType): Case => ({
  name: `a CSI volume of another driver on ${type} is shown to two groups, and nothing changes on disk`,
  async run(node) {
    const volume = diskVolume(node, type, type)
    const podOf = (group: number) =>
      node.pod({
        name: `${type}-${group}`,
        annotations: { [GROUP]: String(group) },
        volumes: { data: volume, token: new Projected() },
        mounts: [...DATA, { name: 'token', mountPath: '/token', readOnly: true }],
        groups: [group],
      })
    const [first, second] = [await podOf(2000).run(), await podOf(3000).run()]
    for (const [pod, group] of [
      [first, 2000],
      [second, 3000],
    ] as const) {
      await mustWrite(pod, volume.path, group)
      expect('the token', await pod.says('cat /token/token'), 'token')
    }
    expect('a file of the other', await second.says(`cat /data/sub/of-${first.wish.name}`), 'new')
    await first.remove()
    await mustWrite(second, volume.path, 3000)
    await second.remove()
    volume.unstage()
    return 'sees 2000 and 3000, each writes; 1500 on disk'
  },
})

/** Creates a container as kubelet does, which tries again until that succeeds. */
async function retried(create: () => Promise<string>): Promise<string> {
  let id: string | undefined
  await until(
    'the container is created',
    async () => {
      id = await create().catch(() => undefined)
      return id !== undefined
    },
    30,
  )
  return id ?? ''
}

/** A pod that asks for group 2000 and writes. */
async function written(
  node: RuntimeNode,
  name: string,
  volume: LocalVolume | HostPath,
  asked: string,
): Promise<string> {
  const pod = node.pod({
    name,
    annotations: { [GROUP]: asked },
    volumes: { data: volume },
    mounts: DATA,
    groups: [2000],
  })
  await pod.run()
  await mustWrite(pod, volume.path, 2000)
  await pod.remove()
  return 'sees 2000 and writes; 1500 on disk'
}

/** Each kind of volume that a pod can have. */
export const VOLUMES: readonly Case[] = [
  ...(['ext4', 'xfs', 'btrfs'] as const).map(onDisk),
  {
    name: 'a volume with content is walked once by modekeep/group-access, and the container is created after that',
    async run(node) {
      const volume = diskVolume(node, 'grant', 'ext4')
      fs.chmodSync(volume.path, 0o755)
      const one = () => {
        const { gid, mode } = fs.statSync(`${volume.path}/one`)
        return `${gid} ${(mode & 0o777).toString(8)}`
      }
      const before = one()
      const podOf = (name: string, group: number) =>
        node.pod({
          name,
          annotations: { [GROUP]: String(group), 'modekeep/group-access': 'grant' },
          volumes: { data: volume },
          mounts: DATA,
          groups: [group],
        })
      const refused = await podOf('grant-refused', 2000).begin()
      expect('the refusal', await refusal('no rule', refused.create()), /may not be walked .*"groupAccess": "grant"/s)
      await refused.remove()
      node.configure([{ groupAccess: 'grant' }])
      const pod = await podOf('grant', 2000).begin()
      expect('the first attempt', await refusal('a walk', pod.create()), /is being walked on disk for group 2000/)
      const id = await retried(() => pod.create())
      await pod.start(id)
      expect('a new file', await pod.says('echo new >/data/new && stat -c %g /data/new', id), '2000')
      expect('a file on disk', one(), '2000 660')
      const second = await podOf('grant-second', 3000).run()
      expect('what a second group sees', await second.says('stat -c %g /data/one && cat /data/new'), '3000\nnew')
      for (const each of [pod, second]) await each.remove()
      const { status, stdout, stderr } = spawnSync(BINARY, ['restore', volume.path], { encoding: 'utf8' })
      expect(`the restore (${stdout}${stderr})`, status, 0)
      expect('the file after a restore', one(), before)
      node.configure()
      volume.unstage()
      return `refused without a rule; ${before}, walked: 2000 660; 3000 is mapped; restored`
    },
  },
  {
    name: 'a local PersistentVolume is mapped',
    async run(node) {
      const path = `${node.place}/local`
      fs.mkdirSync(path)
      fill(path)
      return written(node, 'local', new LocalVolume('pv-local', path), '2000')
    },
  },
  {
    name: "an emptyDir on the node's disk gets the group",
    async run(node) {
      const volume = new EmptyDir()
      const pod = node.pod({
        name: 'emptydir',
        annotations: { [GROUP]: '2000' },
        volumes: { data: volume },
        mounts: DATA,
        groups: [2000],
      })
      await pod.run()
      const seen = await pod.says('stat -c %g /data && echo new >/data/new')
      expect('the group it sees', seen, '2000')
      expect('its group on disk', fs.statSync(volume.path).gid, 2000)
      await pod.remove()
      return 'sees 2000 and writes; 2000 on disk'
    },
  },
  {
    name: 'an emptyDir in memory gets the group without a rule for tmpfs',
    async run(node) {
      const volume = new EmptyDir('Memory')
      const pod = node.pod({
        name: 'memory',
        annotations: { [GROUP]: 'data=2000' },
        volumes: { data: volume },
        mounts: DATA,
        groups: [2000],
      })
      await pod.run()
      expect('the group it sees', await pod.says('stat -c %g /data && echo new >/data/new'), '2000')
      expect('its group in the volume', fs.statSync(volume.path).gid, 2000)
      await pod.remove()
      return 'sees 2000 and writes'
    },
  },
  {
    name: 'a hostPath is skipped by the annotation "2000", refused by its path, and mapped if a rule of the node allows it',
    async run(node) {
      const path = `${node.place}/host`
      fs.mkdirSync(path)
      fill(path)
      const podOf = (name: string, asked: string) =>
        node.pod({
          name,
          annotations: { [GROUP]: asked },
          volumes: { data: new HostPath(path) },
          mounts: DATA,
          groups: [2000],
        })
      const left = await podOf('host-left', '2000').run()
      expect('a read of the group', (await left.exec('cat /data/one')).code === 0, false)
      await left.remove()
      const refused = await podOf('host-refused', `${path}=2000`).begin()
      const message = await refusal('hostPath', refused.create())
      expect('the refusal', message.includes(path) && /hostPath.*"map"/.test(message), true)
      await refused.remove()
      node.configure([{ volumes: ['hostPath'], sources: [path] }])
      const seen = await written(node, 'host', new HostPath(path), `${path}=2000`)
      node.configure()
      return seen
    },
  },
  {
    name: 'a subPath of a directory or file of the volume is cloned, and a subPath of a hostPath with the same name is not',
    async run(node) {
      const volume = diskVolume(node, 'subpath', 'ext4')
      const pod = node.pod({
        name: 'subpath',
        annotations: { [GROUP]: 'pv-subpath=2000' },
        volumes: { 'pv-subpath': volume },
        mounts: [
          { name: 'pv-subpath', mountPath: '/sub', subPath: 'sub' },
          { name: 'pv-subpath', mountPath: '/file', subPath: 'one' },
        ],
        groups: [2000],
      })
      await pod.run()
      expect('what it sees', await pod.says('ls /sub && stat -c %g /sub /sub/two /file'), 'two\n2000\n2000\n2000')
      await pod.says('echo more >>/file && echo new >/sub/new')
      mustBeUntouched(volume.path)
      await pod.remove()
      await refusesNamesake(node, volume)
      volume.unstage()
      return 'sees 2000 and writes; 1500 on disk; refused of a hostPath of the same name'
    },
  },
  {
    name: 'a volume that a container has twice, once read-only, stays read-only there',
    async run(node) {
      const volume = diskVolume(node, 'readonly', 'ext4')
      const pod = node.pod({
        name: 'readonly',
        annotations: { [GROUP]: '2000' },
        volumes: { data: volume },
        mounts: [
          { name: 'data', mountPath: '/read', readOnly: true },
          { name: 'data', mountPath: '/data' },
        ],
        groups: [2000],
      })
      await pod.run()
      expect('the groups', await groupsSeen(pod, '/read'), '2000')
      expect('a write', (await pod.exec('echo new >/read/sub/new')).text, /Read-only file system/)
      await mustWrite(pod, volume.path, 2000)
      await pod.remove()
      volume.unstage()
      return 'sees 2000; Read-only file system'
    },
  },
  {
    name: 'two volumes with one group each are mapped in two containers of a pod',
    async run(node) {
      const [data, logs] = [diskVolume(node, 'data', 'ext4'), diskVolume(node, 'logs', 'xfs')]
      const pod = node.pod({
        name: 'each',
        annotations: { [GROUP]: 'pv-data=2000,pv-logs=3000' },
        volumes: { 'pv-data': data, 'pv-logs': logs },
        mounts: [
          { name: 'pv-data', mountPath: '/data' },
          { name: 'pv-logs', mountPath: '/logs' },
        ],
        groups: [2000, 3000],
      })
      await pod.begin()
      for (const name of ['one', 'two']) {
        const id = await pod.create(name)
        await pod.start(id)
        await mustWrite(pod, data.path, 2000, '/data', id)
        await mustWrite(pod, logs.path, 3000, '/logs', id)
      }
      await pod.remove()
      for (const volume of [data, logs]) volume.unstage()
      return 'data 2000, logs 3000 in both containers'
    },
  },
  {
    name: 'a volume on overlayfs cannot be mapped: refused, or started without the group if it is optional',
    async run(node) {
      const [lower, upper, work, path] = ['lower', 'upper', 'work', 'merged'].map(
        (name) => `${node.place}/overlay/${name}`,
      ) as [string, string, string, string]
      for (const directory of [lower, upper, work, path]) fs.mkdirSync(directory, { recursive: true })
      const volume = new LocalVolume('pv-overlay', path, [
        '-t',
        'overlay',
        '-o',
        `lowerdir=${lower},upperdir=${upper},workdir=${work}`,
        'overlay',
      ])
      fill(path)
      const podOf = (name: string, more: object) =>
        node.pod({
          name,
          annotations: { [GROUP]: 'pv-overlay=2000', ...more },
          volumes: { 'pv-overlay': volume },
          mounts: [{ name: 'pv-overlay', mountPath: '/data' }],
          groups: [2000],
        })
      node.configure([{ fsTypes: ['overlay'] }])
      const refused = await podOf('overlay', {}).begin()
      const message = await refusal('overlayfs', refused.create())
      expect(
        'the refusal',
        message,
        /modekeep\/group is "pv-overlay=2000".*"pv-overlay".*overlay.*modekeep\/group-optional/s,
      )
      expect('what is left', clonesOnNode(), [])
      await refused.remove()
      const pod = await podOf('overlay-2', { [OPTIONAL]: 'true' }).run()
      expect('its group', await pod.says('stat -c %g /data'), '1500')
      await pod.remove()
      node.configure()
      volume.unmount()
      return 'refused; without: sees 1500'
    },
  },
]

/** Kubelet binds a subPath of a hostPath by the pod's name for it, which may be that of a claim's PersistentVolume. */
async function refusesNamesake(node: RuntimeNode, volume: Volume): Promise<void> {
  const host = `${node.place}/namesake`
  fs.mkdirSync(host)
  fill(host)
  const subPath = `${'../'.repeat(20)}${host}`
  const pod = node.pod({
    name: 'namesake',
    annotations: { [GROUP]: '/m=2000' },
    volumes: { 'pv-subpath': volume },
    mounts: [{ name: 'pv-subpath', mountPath: '/m', subPath }],
    groups: [2000],
  })
  await pod.begin()
  const message = await refusal('a hostPath by the name of another volume', pod.create())
  expect('the refusal', message, /"pv-subpath" \(at "\/m"\) has a subPath of something else than the volume/)
  await pod.remove()
}
