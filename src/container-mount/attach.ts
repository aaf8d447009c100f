import { mapIds, SEVERAL_GROUPS, Unmappable } from '../fs-group/map-group.ts'
import { underWay } from '../fs-group/under-way.ts'
import { closing, type Handle, type Host } from '../host/host.ts'
import type { IdMap } from '../host/id-map.ts'
import { RDONLY } from '../mount-table/flags.ts'
import { restrictionsReader } from '../mount-table/mount-restrictions.ts'
import { snapshotTable } from '../mount-table/table-snapshot.ts'
import { locationsOfHandles } from '../mount-table/tree-location.ts'
import { messageOf, quoted, Refusal } from '../refusal/refusal.ts'
import { type ContainerRecord, containerRecords, isContainerId } from '../store/container-record.ts'
import type { Session } from '../store/session.ts'
import { hasOneGroup } from '../store/volume-record.ts'
import type { Clonable } from './clonable.ts'
import { refuseMountsBelow, refuseOptions, refuseType } from './clone-refusals.ts'
import { mappingFor } from './mapping.ts'
import {
  type AttachStep,
  type CloneOutcome,
  type CloneRequest,
  type ContainerCloneRequest,
  type ContainerOutcome,
  findRemedy,
  formatRefusal,
} from './order.ts'
import { ordersByPath } from './other-paths.ts'
import { cloneOwn } from './own-volume.ts'
import { podIds } from './pod-ids.ts'
import { recordFor } from './record.ts'
import { checkRules, findRootFacts, type RootFacts, restoreRootBitsOf, setRootBits } from './root-bits.ts'
import { cloneSource, type Where } from './source.ts'
import { attachClone, clonePath, holdContainer, makeContainerDirectory, takeDown } from './stand.ts'

/** A mount that is to be made; `why`: it is not possible. */
interface Planned {
  order: CloneRequest
  /** 'keep': it needs none. */
  source?: Clonable | 'keep'
  /** Undefined: it shows all as it is. */
  map?: IdMap | undefined
  /** Mount options of the clone, once it is attached. */
  restrictions?: readonly string[] | undefined
  root?: RootFacts
  why?: string | undefined
}

/**
 * Makes what a container needs before it is created: all of it or, with an error thrown, nothing. Of an optional order
 * what is possible.
 * @throws {Refusal} with every fault: annotation, volume, reason and way out
 */
export async function attachClones(
  session: Session,
  order: ContainerCloneRequest,
  report: (step: AttachStep) => void = () => {},
): Promise<ContainerOutcome> {
  const { container } = order
  if (!isContainerId(container)) throw new Refusal(`the runtime named a container ${quoted(container)}: report this`)
  report({ step: 'lock' })
  using _lock = await holdContainer(session, container)
  takeDown(session, container)
  using handles = new DisposableStack()
  const planned: Planned[] = []
  const table = snapshotTable(session.host)
  const where = { ...order, table, locationOf: locationsOfHandles(session.host, table) }
  for (const [volume, clone] of order.clones.entries()) {
    report({ step: 'open', volume })
    planned.push(await plan(session, order, where, clone, handles))
  }
  refuseUnlessOptional(order, planned)
  if (planned.every(({ source }) => source === 'keep')) return { mounts: planned.map(() => ({ do: 'keep' })) }
  const before = planned.filter(({ why }) => why !== undefined).length
  report({ step: 'records' })
  try {
    containerRecords.write(session, recordOf(session, order, planned))
    await lookForWork(session, planned)
    refuseUnlessOptional(order, planned)
    const directory = await makeContainerDirectory(session, container)
    using _directory = closing(session.host.inodes, directory)
    for (const [number, one] of planned.entries()) {
      report({ step: 'attach', volume: number })
      await make(session, directory, number, one)
    }
    await readRestrictions(session.host, planned)
    refuseUnlessOptional(order, planned)
    const lacking = planned.filter(({ why }) => why !== undefined).length
    if (lacking > before) containerRecords.write(session, recordOf(session, order, planned))
  } catch (error) {
    undo(session, container)
    await restoreRootBitsOf(
      session,
      planned.flatMap(({ root }) => root ?? []),
      { isSweep: true },
    )
    throw error
  }
  return { mounts: planned.map((one, number) => outcomeOf(session, container, one, number)) }
}

function plan(
  session: Session,
  order: ContainerCloneRequest,
  where: Where,
  clone: CloneRequest,
  handles: DisposableStack,
): Promise<Planned> {
  return attempt({ order: clone }, async (one) => {
    const pod = podIds(session.host, order)
    refuseOptions(clone)
    let orders: readonly CloneRequest[] = [clone]
    one.source = clone.isOwn
      ? await cloneOwn(session, where, clone, handles)
      : cloneSource(session, where, clone, handles, (handle, path) => {
          orders = ordersByPath(session, where, clone, handle)
          for (const each of orders) refuseType(session.host, each, handle)
          refuseMountsBelow(session.host, where.table, handle, path)
        })
    if (one.source === 'keep') return
    // The mount of a volume of modekeep's own was checked when it was made.
    if (!clone.isOwn) for (const each of orders) checkRules(session, each, one.source, where.table)
    one.root = findRootFacts(session, clone, one.source)
    one.map = mappingFor(one.source.from, one.source.to, pod)
  })
}

/** What is not possible is told of the one; what fails otherwise too, as the order may be optional. */
async function attempt(one: Planned, work: (one: Planned) => void | Promise<void>): Promise<Planned> {
  try {
    await work(one)
  } catch (error) {
    one.why = whyNot(one.order, error)
  }
  return one
}

function whyNot(order: CloneRequest, error: unknown): string {
  const { group } = order
  const what = group === undefined ? 'cannot be mapped for the pod' : `cannot show its group as ${group}`
  if (error instanceof Unmappable) return `${what}: ${error.why}: ${findRemedy(order)}`
  if (error instanceof Refusal) return error.message
  return `could not be mapped (${messageOf(error)}): look at the node's log, or ${findRemedy(order)}`
}

function refuseUnlessOptional({ isOptional }: ContainerCloneRequest, planned: readonly Planned[]): void {
  const faults = planned.flatMap(({ order, why }) => (why === undefined ? [] : formatRefusal(order, why)))
  if (!isOptional && faults.length > 0) throw new Refusal(faults)
}

/** The groups on disk must stay what they are on record: who changes one now, or has just done so, is in the way. */
async function lookForWork(session: Session, planned: readonly Planned[]): Promise<void> {
  // Of modekeep's own volumes the mount holds the group.
  const relying = planned.flatMap((one) => (one.order.isOwn ? [] : toMake(one).map((source) => ({ one, source }))))
  const relied = relying.map(({ source: { identity = '', path, from } }) => ({
    volume: identity,
    source: path,
    group: from,
  }))
  const busy = await underWay(session, relied)
  for (const [at, { one, source }] of relying.entries()) {
    await attempt(one, () => {
      if (source.identity !== undefined && !hasOneGroup(session, source.identity)) throw new Unmappable(SEVERAL_GROUPS)
      if (busy[at] === undefined && source.groupNow() === source.from) return
      throw new Refusal('is being given another group by another call: kubelet tries again, wait until that is done')
    })
  }
}

/** None or one. */
function toMake({ source, why }: Planned): Clonable[] {
  return why !== undefined || source === undefined || source === 'keep' ? [] : [source]
}

/** One clone, finished before it is attached. */
async function make(session: Session, directory: Handle, number: number, planned: Planned): Promise<void> {
  const { order, map } = planned
  for (const source of toMake(planned)) {
    const { tree, clonedFrom, fsType } = source
    await attempt(planned, async () => {
      // Also has it keep to itself.
      session.host.mounts.setFlags(tree, { set: order.options.includes('ro') ? RDONLY : 0, clear: 0 })
      if (map !== undefined) mapIds(session, tree, clonedFrom, map, fsType)
      await setRootBits(session, order, source, planned.root?.rootVolume)
      attachClone(session, directory, number, tree)
    })
  }
}

/** Called once all clones are attached: a kernel before Linux 6.8 has the mount table read for them, which is done once. */
async function readRestrictions(host: Host, planned: readonly Planned[]): Promise<void> {
  const read = restrictionsReader(host)
  for (const one of planned) {
    for (const { tree } of toMake(one)) {
      await attempt(one, () => {
        one.restrictions = read(tree)
      })
    }
  }
}

function recordOf({ host }: Session, order: ContainerCloneRequest, planned: readonly Planned[]): ContainerRecord {
  const volumes = planned.flatMap(
    ({ order: { volume, destination, source: asked, isOwn, group }, source, root, why }) => {
      if (source === 'keep') return []
      const { path = asked, identity, from, to = group } = source ?? {}
      return [{ volume, destination, source: path, isOwn, identity, from, to, ...root, why }]
    },
  )
  return recordFor(host, order, 'created', volumes)
}

function outcomeOf(session: Session, container: string, planned: Planned, number: number): CloneOutcome {
  const { why, source, restrictions = [] } = planned
  if (why !== undefined) return { do: 'without', why }
  if (source === 'keep') return { do: 'keep' }
  return { do: 'replace', source: clonePath(session, container, number), restrictions }
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
