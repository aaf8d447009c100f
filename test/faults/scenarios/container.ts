import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect } from 'vitest'
import type { CloneRequest } from '../../../src/container/clone-request.ts'
import type { ContainerTask } from '../../../src/container/container-task.ts'
import { NRI_WORKER_VERB } from '../../../src/kernel/worker-process.ts'

import type { Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

const POD = 'nri'
const CONTAINER = 'c0ffee'
const GROUPS = [2000, 3000] as const

const stagingMount = (on: FaultNode) => `${on.node.state}/nri/mounts`
const source = (on: FaultNode, volume: string) => `${on.node.top}/pods/${POD}/volumes/kubernetes.io~csi/${volume}/mount`

const subPath = (on: FaultNode, volume: string) => `${on.node.top}/pods/${POD}/volume-subpaths/${volume}/app/0`

function clone(volume: string, source: string, group: number): CloneRequest {
  const destination = `/${volume}`
  const requestedBy = `annotation modekeep/group is "${volume}=${group}"`
  const options = ['rbind', 'rprivate', 'rw']
  return { volume, destination, source, options, group, requestedBy, isOwn: false }
}

function attach(on: FaultNode): ContainerTask {
  const order = {
    container: CONTAINER,
    containerName: 'app',
    sandbox: '5a',
    pod: { namespace: 'default', name: 'web', uid: POD },
    hasUserNamespace: false,
    kubeletDir: on.node.top,
    clones: [clone('data', source(on, 'data'), GROUPS[0]), clone('other', subPath(on, 'other'), GROUPS[1])],
    isOptional: false,
  }
  return { do: 'attach', request: order }
}

const released = (as: 'started' | 'gone'): ContainerTask => ({ do: 'release', container: CONTAINER, as })

/** The volumes of another driver, as kubelet has them mounted for the pod. */
function mounted(on: FaultNode): void {
  for (const [volume, directory] of [
    ['data', on.source],
    ['other', on.other],
  ] as const) {
    fs.mkdirSync(source(on, volume), { recursive: true })
    execFileSync('mount', ['--bind', directory, source(on, volume)])
  }
  // As kubelet does for a container's subPath.
  fs.mkdirSync(subPath(on, 'other'), { recursive: true })
  execFileSync('mount', ['--bind', source(on, 'other'), subPath(on, 'other')])
}

async function attached(on: FaultNode): Promise<void> {
  mounted(on)
  await on.succeedFor(attach(on))
}

/** Two clones, each with its group, in the place that keeps to itself. */
function showsBoth(on: FaultNode): void {
  for (const [number, group] of GROUPS.entries()) {
    const { gid, uid, ino } = fs.statSync(`${stagingMount(on)}/${CONTAINER}/${number}`)
    expect({ gid, uid, ino }).toEqual({ gid: group, uid: 0, ino: fs.statSync([on.source, on.other][number] ?? '').ino })
  }
  expect(fs.readFileSync(`${stagingMount(on)}/${CONTAINER}/1/plain`, 'utf8')).toBe('other')
  expect(clones(on)).toHaveLength(GROUPS.length)
}

/** After any fault, the volumes are unchanged, and a clone was mapped before it was attached. */
function isSound(on: FaultNode): void {
  on.expectUntouched()
  expect(fs.readFileSync(`${on.other}/plain`, 'utf8')).toBe('other')
  for (const point of clones(on)) expect(fs.statSync(point).gid).toBe(GROUPS[Number(point.split('/').at(-1))])
}

function clones(on: FaultNode): string[] {
  return on.mountedInState().filter((point) => point.startsWith(`${stagingMount(on)}/`))
}

const hasNone = (on: FaultNode) => expect(clones(on)).toEqual([])

/** What the plugin tells of a container that was removed or could not be created, and what a later connection does. */
async function gone(on: FaultNode): Promise<void> {
  for (let times = 0; times < 2; times++) await on.succeedFor(released('gone'))
  await atNextConnection(on)
}

/** The runtime knows of no container, then or a moment later: nothing is left, also without another event of this one. */
async function atNextConnection(on: FaultNode): Promise<void> {
  const known = { at: Date.now() + 1, created: [], started: [], unmapped: [] }
  await on.succeedFor({ do: 'reconcile', known })
  await on.succeedFor({ do: 'reconcile', known: { ...known, isLater: true } })
  expect(on.mountedInState()).toEqual([])
}

async function startedAndGone(on: FaultNode): Promise<void> {
  await on.succeedFor(released('started'))
  hasNone(on)
  await gone(on)
}

/** Kubelet tries again by the same container, in the place of another, or gives up. */
const AFTER_CREATION = [
  async (on: FaultNode) => {
    const { mounts = [] } = await on.succeedFor(attach(on))
    expect(mounts.map((one) => one.do)).toEqual(['replace', 'replace'])
    showsBoth(on)
    await startedAndGone(on)
  },
  gone,
  atNextConnection,
]

const worker = { pods: [POD], reader: 'plugin' as const, args: () => [NRI_WORKER_VERB] }
const line = (job: ContainerTask) => `${JSON.stringify(job)}\n`

export const CONTAINER_JOBS: Situation[] = [
  {
    ...worker,
    title: 'creation of a container with two volumes, in NRI',
    input: (on) => line(attach(on)),
    before: async (on) => mounted(on),
    sound: isSound,
    promised: showsBoth,
    next: AFTER_CREATION,
  },
  {
    ...worker,
    title: 'start of a container, in NRI',
    input: () => line(released('started')),
    before: attached,
    sound: isSound,
    promised: hasNone,
    next: [startedAndGone, gone, atNextConnection],
  },
  {
    ...worker,
    title: 'end of a container, in NRI',
    input: () => line(released('gone')),
    before: attached,
    sound: isSound,
    promised(on) {
      hasNone(on)
      // A lock that could not be given back goes at the next connection.
      expect(fs.readdirSync(`${on.node.state}/nri`).filter((name) => !name.endsWith('.lock'))).toEqual(['mounts'])
    },
    // Also if the plugin crashed with it: the container is not reported again.
    next: [gone, atNextConnection, AFTER_CREATION[0] ?? gone],
  },
]
