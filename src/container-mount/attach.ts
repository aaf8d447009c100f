import { mapIds, SEVERAL_GROUPS, Unmappable } from '../fs-group/map-group.ts'
import { underWay } from '../fs-group/under-way.ts'
import { closing, type Handle, type Host } from '../host/host.ts'
import type { IdMap } from '../host/id-map.ts'
import { RDONLY } from '../mount-table/flags.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { messageOf, quoted, Refusal } from '../refusal/refusal.ts'
import { type ContainerRecord, containerRecords, isContainerId } from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import { hasOneGroup } from '../store/volume-record.ts'
import { mappingFor } from './mapping.ts'
import {
  type CloneOrder,
  type CloneOutcome,
  type ContainerOrder,
  type ContainerOutcome,
  LEAVE_OUT,
  refusalFor,
} from './order.ts'
import { podIds } from './pod-ids.ts'
import { type OpenedMount, openMountSource } from './source.ts'
import { attachClone, clonePath, holdContainer, makeContainerDirectory, takeDown } from './stand.ts'

/** A mount that is to be made; `why`: it is not possible. */
interface Planned {
  order: CloneOrder
  opened: OpenedMount | undefined
  /** Undefined: it shows all as it is. */
  map?: IdMap | undefined
  why?: string | undefined
}

/**
 * Makes what a container needs before it is created: all of it or, with an error thrown, nothing. Of an optional order
 * what is possible.
 * @throws {Refusal} with every fault: annotation, volume, reason and way out
 */
export async function attachClones(session: Session, order: ContainerOrder): Promise<ContainerOutcome> {
  const { container } = order
  if (!isContainerId(container)) throw new Refusal(`the runtime named a container ${quoted(container)}: report this`)
  using _lock = await holdContainer(session, container)
  takeDown(session, container)
  using handles = new DisposableStack()
  const planned = order.clones.map((clone) => plan(session, order, clone, handles))
  refuseUnlessOptional(order, planned)
  const before = planned.filter(({ why }) => why !== undefined).length
  try {
    containerRecords.write(session, recordOf(session, order, planned))
    await lookForWork(session, planned)
    refuseUnlessOptional(order, planned)
    const directory = await makeContainerDirectory(session, container)
    using _directory = closing(session.host.inodes, directory)
    for (const [number, one] of planned.entries()) make(session, directory, number, one)
    refuseUnlessOptional(order, planned)
    const lacking = planned.filter(({ why }) => why !== undefined).length
    if (lacking > before) containerRecords.write(session, recordOf(session, order, planned))
  } catch (error) {
    undo(session, container)
    throw error
  }
  return { mounts: planned.map((one, number) => outcomeOf(session, container, one, number)) }
}

function plan(session: Session, order: ContainerOrder, clone: CloneOrder, handles: DisposableStack): Planned {
  return attempt({ order: clone, opened: undefined }, (one) => {
    const pod = podIds(session.host, order)
    one.opened = openMountSource(session, order, clone)
    handles.use(closing(session.host.inodes, one.opened.handle))
    refuseOptions(clone)
    refuseType(session.host, clone, one.opened.handle)
    refuseMountsBelow(session.host, one.opened.path)
    one.map = mappingFor(one.opened.group, clone.group, pod)
  })
}

/** What is not possible is told of the one; what fails otherwise too, as the order may be optional. */
function attempt(one: Planned, work: (one: Planned) => void): Planned {
  try {
    work(one)
  } catch (error) {
    one.why = whyNot(one.order, error)
  }
  return one
}

function whyNot({ group }: CloneOrder, error: unknown): string {
  const what = group === undefined ? 'cannot be mapped for the pod' : `cannot show its group as ${group}`
  if (error instanceof Unmappable) return `${what}: ${error.why}: ${LEAVE_OUT}`
  if (error instanceof Refusal) return error.message
  return `could not be mapped (${messageOf(error)}): look at the node's log, or ${LEAVE_OUT}`
}

function refuseUnlessOptional({ isOptional }: ContainerOrder, planned: readonly Planned[]): void {
  const faults = planned.flatMap(({ order, why }) => (why === undefined ? [] : refusalFor(order, why)))
  if (!isOptional && faults.length > 0) throw new Refusal(faults)
}

const PROPAGATION = new Set(['shared', 'rshared', 'slave', 'rslave'])

function refuseOptions({ options }: CloneOrder): void {
  const option = options.find((name) => PROPAGATION.has(name))
  if (option === undefined) return
  throw new Refusal(
    `has mount propagation (${option}), which a mapped clone does not take part in: leave "mountPropagation" out, or the volume out of the annotation`,
  )
}

function refuseType(host: Host, { fsTypes }: CloneOrder, handle: Handle): void {
  if (fsTypes === undefined) return
  const type = typeOf(host, handle)
  if (fsTypes.includes(type)) return
  throw new Refusal(
    `is on ${type}, and this node's configuration ("map") allows ${fsTypes.join(', ')} here: have a rule name it, or ${LEAVE_OUT}`,
  )
}

function typeOf({ inodes, mounts }: Host, handle: Handle): string {
  const known = inodes.typeOfMount(inodes.statMountPoint(handle).mountId)
  if (known !== undefined) return known
  const id = mounts.tableId(handle)
  return parseMountinfo(mounts.table()).find((row) => row.id === id)?.fsType ?? 'an unknown file system'
}

/** A clone is of one mount: what is mounted inside would be missing, and what it covers would show. */
function refuseMountsBelow({ mounts }: Host, path: string): void {
  const text = mounts.table()
  const shown = path.replace(/[ \t\n\\]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)
  // Read as rows only where the text may have one: on a node with thousands of mounts that takes milliseconds.
  if (!text.includes(` ${shown === '/' ? '' : shown}/`)) return
  const below = parseMountinfo(text).find(({ mountPoint }) => mountPoint.startsWith(path === '/' ? '/' : `${path}/`))
  if (below === undefined) return
  throw new Refusal(
    `has another mount inside (${quoted(below.mountPoint)}), and only a volume without one can be mapped: mount a directory that has none`,
  )
}

/** The groups on disk must stay what they are on record: who changes one now, or has just done so, is in the way. */
async function lookForWork(session: Session, planned: readonly Planned[]): Promise<void> {
  const possible = planned.flatMap((one) => (one.why === undefined && one.opened ? [{ one, opened: one.opened }] : []))
  const relied = possible.map(({ opened: { identity, path, group } }) => ({ volume: identity, source: path, group }))
  const busy = await underWay(session, relied)
  for (const [at, { one, opened }] of possible.entries()) {
    attempt(one, () => {
      if (!hasOneGroup(session, opened.identity)) throw new Unmappable(SEVERAL_GROUPS)
      const isOther = busy[at] !== undefined || opened.groupNow() !== opened.group
      if (!isOther) return
      throw new Refusal('is being given another group by another call: kubelet tries again, wait until that is done')
    })
  }
}

/** One clone, finished before it is attached. */
function make(session: Session, directory: Handle, number: number, planned: Planned): void {
  const { order, opened } = planned
  if (planned.why !== undefined || opened === undefined) return
  attempt(planned, () => {
    const { inodes, mounts } = session.host
    const tree = mounts.cloneTree(opened.handle)
    using _ = closing(inodes, tree)
    mounts.setFlags(tree, { set: order.options.includes('ro') ? RDONLY : 0, clear: 0 })
    if (planned.map !== undefined) mapIds(session, tree, opened.handle, planned.map)
    attachClone(session, directory, number, tree)
  })
}

function recordOf({ host }: Session, order: ContainerOrder, planned: readonly Planned[]): ContainerRecord {
  const { container, containerName, sandbox, pod, kubeletDir } = order
  return {
    container,
    containerName,
    sandbox,
    pod,
    kubeletDir,
    boot: host.bootId(),
    at: Date.now(),
    state: 'created',
    volumes: planned.map(({ order: { volume, destination, source, isOwn, group }, opened, why }) => ({
      volume,
      destination,
      source: opened?.path ?? source,
      isOwn,
      identity: opened?.identity,
      from: opened?.group,
      to: group,
      why,
    })),
  }
}

function outcomeOf(session: Session, container: string, { why }: Planned, number: number): CloneOutcome {
  if (why !== undefined) return { do: 'without', why }
  return { do: 'replace', source: clonePath(session, container, number) }
}

/** The record goes last: by it the next job finds what could not be taken away. */
function undo(session: Session, container: string): void {
  try {
    takeDown(session, container)
    containerRecords.remove(session, container)
  } catch (error) {
    session.warn(`could not take the mounts of container ${container} away: ${messageOf(error)}`)
  }
}
