import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runGarbageCollection } from '../../src/cli/commands/gc.ts'
import { checkContainerRecords } from '../../src/cli/doctor/records.ts'
import { findContainerProblems, readContainerStatuses } from '../../src/cli/node-state/containers.ts'
import { reconcileContainers, releaseContainerClones } from '../../src/container/container-task.ts'
import { snapshotContainerProcesses } from '../../src/kernel/linux/processes.ts'
import { listContainerGroupHolders } from '../../src/state/container-record.ts'
import { cannotMount, scratch } from '../real-mounts/mapped-volume.ts'
import { CONTAINER, nodeWith, type TestNode } from './node.ts'

const skipped = cannotMount('tmpfs')
const ofNode = fs.readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]'

const DAMAGES = [
  ['that is damaged', (text: string) => text.replace('"from":500', '"from":501'), 'is damaged or is of something else'],
  ['of another format', (text: string) => text.replace('"format":1', '"format":9'), 'its format is 9'],
] as const

/** A node with a container whose record is unreadable. */
async function damaged(harm: (text: string) => string) {
  const node = nodeWith('tmpfs')
  await node.attach(node.order([node.clone()]))
  const file = `${node.top}/state/nri/${CONTAINER}.json`
  fs.writeFileSync(file, harm(fs.readFileSync(file, 'utf8')))
  return { node, file }
}

/** As a runtime mounts the container's root. */
function makeRoot({ top }: TestNode): string {
  const root = `${top}/run/task/${CONTAINER}/rootfs`
  fs.mkdirSync(root, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', 'root', root])
  return root
}

const known = (created: string[], started: string[]) => ({ at: Date.now(), created, started, unmapped: [] })
const collect = (node: TestNode, isDry: boolean) =>
  runGarbageCollection(node.session, { verb: 'gc', isDry, forget: undefined })

describe.skipIf(skipped !== '')(`the record of a container${skipped}`, () => {
  it.each(DAMAGES)(
    '%s: gc keeps the record if the container may exist, and no volume gets another group',
    async (_, harm, why) => {
      const { node, file } = await damaged(harm)
      makeRoot(node)
      const clones = node.mounted()
      expect(() => listContainerGroupHolders(node.session)).toThrow(why)
      expect(() => listContainerGroupHolders(node.session)).toThrow(`delete the pod of container ${CONTAINER}`)
      expect(readContainerStatuses(node.session)).toMatchObject([
        { container: CONTAINER, state: 'unreadable', reason: expect.stringContaining(file), since: null },
      ])
      expect([...checkContainerRecords(node.session)]).toMatchObject([
        { level: 'fault', text: expect.stringContaining(why), remedy: expect.stringContaining('may rely on') },
      ])
      for (const isDry of [true, false]) {
        const { items } = await collect(node, isDry)
        expect(items).toMatchObject([{ kind: 'container', name: CONTAINER, action: 'kept' }])
      }
      expect(node.mounted()).toEqual(clones)
      expect(node.records()).toEqual([`${CONTAINER}.json`])
    },
  )

  it.each(['', '\0'.repeat(400)])(
    'that was not yet on the disk when the node crashed counts as missing',
    async (text) => {
      const { node } = await damaged(() => text)
      expect([listContainerGroupHolders(node.session), readContainerStatuses(node.session)]).toEqual([[], []])
      expect(reconcileContainers(node.session)).toEqual([CONTAINER])
      expect(node.records()).toEqual([])
    },
  )

  it.each(DAMAGES)(
    '%s: gc removes the record if the container does not exist, and other calls succeed',
    async (_, harm) => {
      const { node } = await damaged(harm)
      if (!ofNode) node.session.host = { ...node.session.host, processesNow: () => () => false }
      expect(listContainerGroupHolders(node.session)).toEqual([])
      expect([...checkContainerRecords(node.session)]).toMatchObject([
        { remedy: expect.stringContaining('modekeep gc') },
      ])
      const item = { kind: 'container', name: CONTAINER, action: 'removed' }
      expect(await collect(node, true)).toMatchObject({ items: [item] })
      expect(node.records()).toEqual([`${CONTAINER}.json`])
      expect(await collect(node, false)).toMatchObject({ items: [item] })
      expect([node.mounted(), node.records()]).toEqual([[], []])
    },
  )

  it.each(DAMAGES)("%s: the runtime's container list decides whether the record is removed", async (_, harm) => {
    const { node } = await damaged(harm)
    const clones = node.mounted()
    reconcileContainers(node.session, known([CONTAINER], []))
    expect([node.mounted(), node.records()]).toEqual([clones, [`${CONTAINER}.json`]])
    reconcileContainers(node.session, known([], [CONTAINER]))
    expect([node.mounted(), node.records()]).toEqual([[], [`${CONTAINER}.json`]])
    expect(reconcileContainers(node.session, known([], [CONTAINER]))).toEqual([])
    expect(reconcileContainers(node.session, known([], []))).toEqual([CONTAINER])
    expect(node.records()).toEqual([])
  })

  it.each(DAMAGES)('%s: the record is removed when the container is removed', async (_, harm) => {
    const { node } = await damaged(harm)
    makeRoot(node)
    await releaseContainerClones(node.session, CONTAINER, 'started')
    expect([node.mounted(), node.records()]).toEqual([[node.stagingMount], [`${CONTAINER}.json`]])
    await releaseContainerClones(node.session, CONTAINER, 'gone')
    expect(node.records()).toEqual([])
  })
})

it.skipIf(skipped !== '')(
  `the node's processes are read once for any number of unreadable container records, also by commands${skipped}`,
  async () => {
    const node = nodeWith('tmpfs')
    const { host } = node.session
    const looks: string[] = []
    const count = <T>(what: string, look: () => T) => {
      looks.push(what)
      return look()
    }
    const store = {
      ...node.session,
      host: {
        ...host,
        mounts: { ...host.mounts, table: () => count('mounts', () => host.mounts.table()) },
        processesNow: () => count('processes', () => () => false),
      },
    }
    await node.attach(node.order([node.clone()]))
    await releaseContainerClones(node.session, CONTAINER, 'started')
    for (let number = 0; number < 5; number++) fs.writeFileSync(`${node.top}/state/nri/unreadable-${number}.json`, '{')
    const holders = [expect.objectContaining({ group: 500, pod: 'default/web' })]
    expect(listContainerGroupHolders(store)).toEqual(holders)
    expect(looks.splice(0)).toEqual(['mounts', 'processes'])
    expect(readContainerStatuses(store)).toMatchObject([{ container: CONTAINER, state: 'mapped' }])
    expect(looks.splice(0)).toEqual(['mounts', 'processes'])
    expect(findContainerProblems(store)).toEqual([])
    expect(looks.splice(0)).toEqual(['mounts', 'processes'])
    expect(reconcileContainers(store, undefined, true)).toHaveLength(5)
    expect(looks.splice(0)).toEqual(['mounts', 'processes'])
    expect([...checkContainerRecords(store)]).toHaveLength(5)
    expect(looks.splice(0)).toEqual(['mounts', 'processes'])
  },
)

const cannotGroup = (() => {
  if (!ofNode) return ' (skipped: not in the namespace of processes of the machine)'
  if (skipped !== '') return skipped
  return /\tcgroup2$/m.test(fs.readFileSync('/proc/filesystems', 'utf8'))
    ? ''
    : ' (skipped: this kernel has no cgroup v2)'
})()

const hasProcesses = (container: string) => snapshotContainerProcesses()(container)

it.skipIf(cannotGroup !== '')(`a container's processes are found by the name of their cgroup${cannotGroup}`, () => {
  const cgroups = `${scratch()}/cgroup`
  fs.mkdirSync(cgroups)
  execFileSync('mount', ['-t', 'cgroup2', 'test', cgroups])
  const group = `${cgroups}/cri-containerd-${CONTAINER}.scope`
  expect(hasProcesses(CONTAINER)).toBe(false)
  fs.mkdirSync(group)
  try {
    const script = `echo $$ > ${group}/cgroup.procs && exec sleep 30`
    const child = execFileSync('sh', ['-c', `sh -c '${script}' >/dev/null 2>&1 & echo $!`], { encoding: 'utf8' }).trim()
    try {
      for (let tries = 0; tries < 100 && !hasProcesses(CONTAINER); tries++) execFileSync('sleep', ['0.05'])
      expect(hasProcesses(CONTAINER)).toBe(true)
    } finally {
      process.kill(Number(child), 'SIGKILL')
    }
    for (let tries = 0; tries < 100 && hasProcesses(CONTAINER); tries++) execFileSync('sleep', ['0.05'])
    expect(hasProcesses(CONTAINER)).toBe(false)
  } finally {
    fs.rmdirSync(group)
  }
})
