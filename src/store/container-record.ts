import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import { parseMountinfo } from '../mount-table/mountinfo.ts'
import { PRIVATE } from '../request/defaults.ts'
import type { Store } from './places.ts'
import { type Found, RecordKind } from './record.ts'

const schema = () => {
  const text = z.string()
  const group = z.optional(z.number())
  const volume = z.object({
    /** The pod's name of it, or the path of a hostPath. */
    volume: text,
    /** In the container. */
    destination: text,
    /** What the container would have had; its real path, as far as it was opened. */
    source: text,
    /** modekeep's own: its mount record tells who relies on which group. */
    isOwn: z.boolean(),
    /** The volume's identity. */
    identity: z.optional(text),
    /** The group on disk, and the one that the container sees in its place. */
    from: group,
    to: group,
    /** What root creates there does not get the group: the volume's root has no set-gid bit. */
    hasPlainRoot: z.optional(z.boolean()),
    /** The identity of the whole volume, where what the container sees may be a part of it. */
    rootVolume: z.optional(text),
    /** The container has the volume without the mapping, and why so. */
    why: z.optional(text),
  })
  return z.object({
    container: text,
    containerName: text,
    sandbox: text,
    pod: z.object({ namespace: text, name: text, uid: text }),
    /** Its processes are in the groups that it asked for; undefined: the runtime does not tell. */
    isMember: z.optional(z.boolean()),
    kubeletDir: text,
    /** The boot the container belongs to. */
    boot: text,
    /** Milliseconds since 1970. */
    at: z.number(),
    /** `created`: the node has its clones, or is about to; `started`: the container has its own, the node none. */
    state: z.enum(['created', 'started']),
    volumes: z.array(volume),
  })
}

/** What is known of a container whose volumes show a group by clones, or that asked for that and runs without. */
export type ContainerRecord = z.infer<ReturnType<typeof schema>>
export type ContainerVolume = ContainerRecord['volumes'][number]

export const containerRecords = new RecordKind<ContainerRecord>({
  format: 1,
  schema,
  ownerOf: ({ container }) => container,
  directoryOf: containersDirectory,
  name: { of: (container) => `${container}.json` },
  // Clones and containers end with it.
  isOfThisBoot: true,
  remedy: (container) =>
    `delete the pod of container ${container} ("crictl inspect" names it): "modekeep nri" and "modekeep gc" remove the record of a container that is gone`,
})

export function containersDirectory({ config }: { config: Pick<Store['config'], 'stateDir'> }): string {
  return `${config.stateDir}/${PRIVATE.containers}`
}

/** A runtime's name of a container: it is a part of paths. */
export function isContainerId(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(text)
}

/** Whether a clone was made for one of its volumes, as far as is known. */
export function hasClones({ volumes }: ContainerRecord): boolean {
  return volumes.some(({ why }) => why === undefined)
}

/** Every container that has a record, or the beginning of one. */
export function containersOnRecord(store: Store): string[] {
  const names = store.host.files.list(containersDirectory(store)).filter((name) => /\.json(\.new)?$/.test(name))
  return [...new Set(names.map((name) => name.replace(/\.json(\.new)?$/, '')).filter(isContainerId))].sort()
}

/** With what their records say. */
export function listContainers(store: Store): ({ container: string } & Found<ContainerRecord>)[] {
  return containersOnRecord(store).map((container) => ({ container, ...containerRecords.find(store, container) }))
}

/**
 * Whether a container may still be there, as far as the node tells: its pod's directory is, and the node was not booted
 * since. Kubelet removes the directory once the pod's containers are gone.
 */
export function mayRun({ host }: Pick<Store, 'host'>, { boot, kubeletDir, pod }: ContainerRecord): boolean {
  return boot === host.bootId() && host.files.has(`${kubeletDir}/pods/${pod.uid}`)
}

/**
 * Tells whether a container of which only the name is known may still be there: it has a process, or something is mounted
 * for it, as the root that a runtime makes. The node is looked at when first asked, and once, which takes long.
 */
export function containersSeen(store: Store): (container: string) => boolean {
  const own = `${containersDirectory(store)}/`
  let namesOfMounts: Set<string> | undefined
  let hasProcesses: ReturnType<Host['processesNow']> | undefined
  return (container) => {
    namesOfMounts ??= new Set(
      parseMountinfo(store.host.mounts.table()).flatMap(({ mountPoint }) =>
        mountPoint.startsWith(own) ? [] : mountPoint.split('/'),
      ),
    )
    if (namesOfMounts.has(container)) return true
    hasProcesses ??= store.host.processesNow()
    return hasProcesses(container)
  }
}

/** A container that sees a volume of others with another group, and relies on the one that it has on disk. */
export interface ContainerHolder {
  /** '' where it has no identity. */
  volume: string
  source: string
  /** On disk. */
  group: number
  pod: string
  /** For people, in the place of a mount directory. */
  directory: string
}

/**
 * Those that may still run. modekeep's own volumes have mount records that say the same.
 * @throws {Refusal} where the record of a container that may be there cannot be read: nobody can tell what that relies on
 */
export function containerHolders(store: Store): ContainerHolder[] {
  const isThere = containersSeen(store)
  return listContainers(store).flatMap(({ container, record, problem }) => {
    if (problem !== undefined && isThere(container)) throw problem
    if (record === undefined || !mayRun(store, record)) return []
    const { pod, containerName } = record
    const directory = `container ${containerName}`
    return record.volumes.flatMap(({ identity = '', source, from, isOwn, why }) => {
      if (isOwn || from === undefined || why !== undefined) return []
      return [{ volume: identity, source, group: from, pod: `${pod.namespace}/${pod.name}`, directory }]
    })
  })
}

/**
 * Whether a container that may still run sees a volume of modekeep's by a clone, which relies on what the volume's mount maps.
 * @param isMapped the volume is mounted so: each container that is there and of which nobody can tell may have such a clone
 */
export function hasOwnClone(store: Store, podUid: string, isMapped: boolean): boolean {
  const isThere = containersSeen(store)
  return listContainers(store).some(({ container, record, problem }) => {
    if (problem !== undefined) return isMapped && isThere(container)
    const isOfPod = record?.pod.uid === podUid && record.volumes.some(({ isOwn, why }) => isOwn && why === undefined)
    return isOfPod && mayRun(store, record)
  })
}
