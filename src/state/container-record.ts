import * as z from 'zod/mini'
import { PRIVATE_STATE_DIRECTORIES } from '../config/defaults.ts'
import type { Host } from '../kernel/host.ts'
import { parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { RecordKind, type RecordReadResult } from './record.ts'
import type { Store } from './record-directories.ts'

const containerRecordSchema = () => {
  const text = z.string()
  const group = z.optional(z.number())
  const volume = z.object({
    /** Name of the volume in the pod's spec, or the path of a hostPath. */
    volume: text,
    /** Mount path in the container. */
    destination: text,
    /** Source of the mount that the clone replaces: its real path once it was opened. */
    source: text,
    /** modekeep mounted the volume: its mount record has the group that the pod relies on. */
    isOwn: z.boolean(),
    /** The volume's identity. */
    identity: z.optional(text),
    /** Group id on disk (`from`), and the group id that the container sees instead (`to`). */
    from: group,
    to: group,
    /** The volume's root has no set-gid bit, so files that root creates there do not get the group. */
    hasPlainRoot: z.optional(z.boolean()),
    /** Owner, group and mode of the mounted directory, if the group cannot create files in it. */
    closedRoot: z.optional(text),
    /** Identity of the complete volume, if the container may see only a part of it. */
    rootVolume: z.optional(text),
    /** Reason why the container has the volume without the mapping. */
    why: z.optional(text),
  })
  return z.object({
    container: text,
    containerName: text,
    sandbox: text,
    pod: z.object({ namespace: text, name: text, uid: text }),
    /** The container's processes are in the requested groups; undefined: the runtime does not report it. */
    isMember: z.optional(z.boolean()),
    kubeletDir: text,
    /** Boot id of the node when the container was created. */
    boot: text,
    /** Milliseconds since 1970. */
    at: z.number(),
    /** `created`: its clones exist on the node or are about to; `started`: only the container has them. */
    state: z.enum(['created', 'started']),
    volumes: z.array(volume),
  })
}

/** A container that requested a group: clones of its volumes show the group, or it runs without them. */
export type ContainerRecord = z.infer<ReturnType<typeof containerRecordSchema>>
export type ContainerVolume = ContainerRecord['volumes'][number]

export const containerRecords = new RecordKind<ContainerRecord>({
  format: 1,
  schema: containerRecordSchema,
  ownerOf: ({ container }) => container,
  locate: (store, container) => `${locateContainerRecords(store)}/${container}.json`,
  // Clones and containers do not survive a reboot.
  isOfThisBoot: () => true,
  remedy: (container) =>
    `delete the pod of container ${container} ("crictl inspect" names it): "modekeep nri" and "modekeep gc" remove the record of a container that is gone`,
})

export function locateContainerRecords({ config }: { config: Pick<Store['config'], 'stateDir'> }): string {
  return `${config.stateDir}/${PRIVATE_STATE_DIRECTORIES.containers}`
}

/** Returns whether a text is a container id. Ids become parts of paths, so other characters are rejected. */
export function isContainerId(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(text)
}

/** Returns whether at least one volume has a clone, according to the record. */
export function hasContainerClones({ volumes }: ContainerRecord): boolean {
  return volumes.some(({ why }) => why === undefined)
}

/** Lists the ids of containers that have a record, or a `.new` file of an interrupted write. */
export function listRecordedContainerIds(store: Store): string[] {
  const names = store.host.files.list(locateContainerRecords(store)).filter((name) => /\.json(\.new)?$/.test(name))
  return [...new Set(names.map((name) => name.replace(/\.json(\.new)?$/, '')).filter(isContainerId))].sort()
}

/** Lists these containers with each record, or the reason why it cannot be read. */
export function listContainerRecords(store: Store): ({ container: string } & RecordReadResult<ContainerRecord>)[] {
  return listRecordedContainerIds(store).map((container) => ({ container, ...containerRecords.find(store, container) }))
}

/** Kubelet removes the pod's directory after its containers, and no container survives a reboot. */
export function mayContainerRun({ host }: Pick<Store, 'host'>, { boot, kubeletDir, pod }: ContainerRecord): boolean {
  return boot === host.bootId() && host.files.has(`${kubeletDir}/pods/${pod.uid}`)
}

/**
 * Returns a check whether a container may still exist, given its id alone. Such a container has a process, or a mount
 * such as its root file system. The first check reads the mount table and the processes, which takes long; later ones
 * reuse the result.
 */
export function createContainerExistenceCheck(store: Store): (container: string) => boolean {
  const stagingPrefix = `${locateContainerRecords(store)}/`
  let mountNames: Set<string> | undefined
  let hasProcesses: ReturnType<Host['processesNow']> | undefined
  return (container) => {
    mountNames ??= new Set(
      parseMountinfo(store.host.mounts.table()).flatMap(({ mountPoint }) =>
        mountPoint.startsWith(stagingPrefix) ? [] : mountPoint.split('/'),
      ),
    )
    if (mountNames.has(container)) return true
    hasProcesses ??= store.host.processesNow()
    return hasProcesses(container)
  }
}

/** A container that sees another driver's volume with a mapped group, and relies on the volume's group on disk. */
export interface ContainerGroupHolder {
  /** Identity of the volume; '' if it has none. */
  volume: string
  source: string
  /** Group id on disk. */
  group: number
  pod: string
  /** Names the container in messages, in place of a mount directory. */
  directory: string
}

/**
 * Lists the volumes of containers that may still run. Volumes that modekeep mounted are omitted, because their mount
 * records have the group.
 * @throws {Refusal} if the record of a container that may exist cannot be read, so that its group is unknown
 */
export function listContainerGroupHolders(store: Store): ContainerGroupHolder[] {
  const mayExist = createContainerExistenceCheck(store)
  return listContainerRecords(store).flatMap(({ container, record, problem }) => {
    if (problem !== undefined && mayExist(container)) throw problem
    if (record === undefined || !mayContainerRun(store, record)) return []
    const { pod, containerName } = record
    const directory = `container ${containerName}`
    return record.volumes.flatMap(({ identity = '', source, from, isOwn, why }) => {
      if (isOwn || from === undefined || why !== undefined) return []
      return [{ volume: identity, source, group: from, pod: `${pod.namespace}/${pod.name}`, directory }]
    })
  })
}

/**
 * Returns whether a container of the pod that may still run has a clone of a volume that modekeep mounted. Such a clone
 * relies on the id map of the volume's mount.
 * @param isMapped the volume's mount has an id map, so a container with an unreadable record may have such a clone
 */
export function hasRunningContainerClone(store: Store, podUid: string, isMapped: boolean): boolean {
  const mayExist = createContainerExistenceCheck(store)
  return listContainerRecords(store).some(({ container, record, problem }) => {
    if (problem !== undefined) return isMapped && mayExist(container)
    const isOfPod = record?.pod.uid === podUid && record.volumes.some(({ isOwn, why }) => isOwn && why === undefined)
    return isOfPod && mayContainerRun(store, record)
  })
}
