import { beforeEach, expect, it } from 'vitest'
import { SOCKET_TYPE } from '../../src/kernel/host.ts'
import { collectGarbage } from '../../src/repair/garbage.ts'
import { healMounts } from '../../src/repair/heal.ts'
import { KubeletPods } from '../../src/repair/kubelets.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const GONE = '11111111-1111-4111-8111-111111111111'
const PROXY = '22222222-2222-4222-8222-222222222222'
const LOGS = '/var/log/pods'

let stage: Stage
let listed: readonly string[] | Error
let running: Set<string>
/** How often kubelet was asked. */
let asked: number

// A pod whose mount is there, and a kubelet that was started later and does not know it.
beforeEach(async () => {
  stage = memoryStage()
  listed = ['kube-system/proxy', 'kube-system/etcd-node']
  running = new Set([PROXY])
  asked = 0
  stage.host.runningPods = () => running
  const { files } = stage.host
  const born: Record<string, number> = { [podDirectory(GONE)]: 1000, [socket()]: 2000 }
  stage.host.files = {
    ...files,
    // memfs has no sockets, and no clock of the test's.
    stat: (path) =>
      path === socket() ? { dev: 1, ino: 7, uid: 0, gid: 0, mode: SOCKET_TYPE | 0o755 } : files.stat(path),
    born: (path) => born[path] ?? files.born(path),
  }
  const { fs, top } = stage
  for (const name of ['pod-resources', `${LOGS}/kube-system_proxy_${PROXY}`]) {
    fs.mkdirSync(name.startsWith('/') ? name : `${top}/${name}`, { recursive: true })
  }
  fs.chmodSync(`${top}/pod-resources`, 0o750)
  fs.writeFileSync(socket(), '')
  makeTree(fs, `${top}/volumes/one`, ['file first 0644'])
  await mount(GONE)
})

const podDirectory = (uid: string) => `${stage.top}/pods/${uid}`
const socket = () => `${stage.top}/pod-resources/kubelet.sock`

function mount(uid: string, name = 'web-0'): Promise<void> {
  const asked = { source: `${stage.top}/volumes/one`, ownership: 'walk', restoreOnUnmount: 'true' }
  const pod = { 'kubernetes.io/pod.name': name, 'kubernetes.io/pod.namespace': 'default' }
  return stage.mount(uid, { ...asked, ...pod, 'kubernetes.io/pod.uid': uid, 'kubernetes.io/fsGroup': '2000' })
}

const list = async () => {
  asked++
  if (listed instanceof Error) throw listed
  return listed
}
/** Each answer counts for itself: nothing is fresh in a test's milliseconds. */
const kubelets = (apart = 0) => new KubeletPods({ list, intervalMs: apart, logs: LOGS, lifetimeMs: 0 })

const found = async (isDry = false, patience?: number, of = kubelets()) =>
  (await healMounts(stage.session(), isDry, patience, of)).map(({ state, action }) => [state, action])
const inVolume = () => groups(listTree(stage.fs, `${stage.top}/volumes/one`))

it('the mount of a deleted pod is unmounted and restored, and its directory is removed', async () => {
  expect(inVolume()).toEqual({ '.': 2000, first: 2000 })
  expect(await found()).toEqual([['orphaned', 'unmounted']])
  expect(inVolume()).toEqual({ '.': 0, first: 0 })
  expect(stage.layers(GONE)).toEqual([])
  expect(listReadableMountRecords(stage)).toEqual([])
  expect(stage.fs.existsSync(stage.podDirectory(GONE))).toBe(false)
  expect(stage.fs.existsSync(podDirectory(GONE))).toBe(true)
  expect(await found()).toEqual([])
})

it("a dry run reports a deleted pod's mount after one query, with reason and remedy", async () => {
  const [finding] = await healMounts(stage.session(), true, undefined, kubelets(60_000))
  expect(finding).toMatchObject({ state: 'orphaned', action: 'unmounted', pod: 'default/web-0' })
  expect(finding?.reason).toMatch(/^its pod is gone .*: modekeep heal unmounts it$/)
  expect(stage.layers(GONE)).toHaveLength(1)
})

it('kubelet is queried twice with a delay, by one waiting heal or by repeated checks of a watch', async () => {
  const started = performance.now()
  const watching = kubelets(60)
  expect(await found(false, 10, watching)).toEqual([['in progress', 'none']])
  expect(stage.layers(GONE)).toHaveLength(1)
  expect(await found(false, undefined, watching)).toEqual([['orphaned', 'unmounted']])
  expect(performance.now() - started).toBeGreaterThanOrEqual(59)
})

it('after a restart of kubelet, heal queries the pod list twice again', async () => {
  const watching = kubelets(50)
  expect(await found(false, 10, watching)).toEqual([['in progress', 'none']])
  await new Promise((resolve) => setTimeout(resolve, 60))
  const { files } = stage.host
  stage.host.files = { ...files, born: (path) => (path === socket() ? 3000 : files.born(path)) }
  expect(await found(false, 10, watching)).toEqual([['in progress', 'none']])
})

it('a pod that the second query lists keeps its mount', async () => {
  const watching = kubelets(20)
  expect(await found(false, 10, watching)).toEqual([['in progress', 'none']])
  listed = [...(listed as string[]), 'default/web-0']
  await new Promise((resolve) => setTimeout(resolve, 25))
  expect(await found(false, 10, watching)).toEqual([['orphaned', 'none']])
  listed = ['kube-system/proxy']
  // The first look is forgotten.
  expect(await found(false, 10, watching)).toEqual([['in progress', 'none']])
})

it.each<[why: string, change: () => void]>([
  ['has a process', () => running.add(GONE)],
  ['has logs', () => stage.fs.mkdirSync(`${LOGS}/default_web-0_${GONE}`, { recursive: true })],
])('a pod that %s is healthy, and kubelet is queried at most once', async (_, change) => {
  change()
  expect(await found(true)).toEqual([['healthy', 'none']])
  expect(asked).toBeLessThanOrEqual(1)
  expect(await found()).toEqual([['healthy', 'none']])
})

it.each<[why: string, change: () => void, reason: RegExp]>([
  ['lists nothing', () => (listed = []), /no running pod of the API server/],
  ['lists only pods that do not run', () => running.delete(PROXY), /no running pod of the API server/],
  ['has a pod with its name', () => (listed = ['kube-system/proxy', 'default/web-0']), /lists a pod default\/web-0/],
  ['does not respond', () => (listed = new Error('deadline')), /does not say which pods it has .*deadline/],
  ["may be another user's", () => stage.fs.chmodSync(`${stage.top}/pod-resources`, 0o777), /not believed/],
])(
  'if kubelet %s, the mount of a possibly deleted pod stays and is reported as possibly orphaned',
  async (_, change, reason) => {
    change()
    for (const isDry of [true, false]) {
      const [finding] = await healMounts(stage.session(), isDry, undefined, kubelets())
      expect(finding).toMatchObject({ state: 'orphaned', action: 'none', reason: expect.stringMatching(reason) })
      expect(finding?.reason).toContain('restart kubelet with the driver there')
    }
    expect(stage.layers(GONE)).toHaveLength(1)
    expect(inVolume()).toEqual({ '.': 2000, first: 2000 })
  },
)

it('a missing mount of a deleted pod is not made again but forgotten, and its volume is restored', async () => {
  const parent = stage.host.inodes.openTrusted(stage.podDirectory(GONE).replace(/\/v$/, ''))
  stage.host.mounts.detach(parent, Buffer.from('v'))
  stage.host.inodes.close(parent)
  expect(await found()).toEqual([['orphaned', 'unmounted']])
  expect(listReadableMountRecords(stage)).toEqual([])
  expect(inVolume()).toEqual({ '.': 0, first: 0 })
})

it('the volume of two deleted pods is restored with the unmount of the second pod', async () => {
  const other = '44444444-4444-4444-8444-444444444444'
  await mount(other, 'web-1')
  running.add(other)
  expect(await found()).toEqual([
    ['orphaned', 'unmounted'],
    ['healthy', 'none'],
  ])
  expect(inVolume()).toEqual({ '.': 2000, first: 2000 })
  await stage.unmount(other)
  expect(inVolume()).toEqual({ '.': 0, first: 0 })
})

it('a mount that a running call has locked is skipped', async () => {
  const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, stage.podDirectory(GONE)))
  expect(await found()).toEqual([['in progress', 'none']])
  expect(stage.layers(GONE)).toHaveLength(1)
  lock?.release()
})

it('gc keeps the mount of a pod that may be deleted', async () => {
  const order = { isDry: false, forget: undefined }
  const items = await collectGarbage(stage.session(), order, kubelets())
  expect(items).toContainEqual(
    expect.objectContaining({
      kind: 'mount record',
      action: 'kept',
      reason: expect.stringMatching(/its pod is gone.*: modekeep heal unmounts it/),
    }),
  )
  expect(stage.layers(GONE)).toHaveLength(1)
})
