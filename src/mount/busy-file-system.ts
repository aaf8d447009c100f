import { quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, type Host, isDiskDevice, type MountedFileSystem, type NamedProcess } from '../kernel/host.ts'
import { type MountPoint, statMountPointUnsynced } from '../kernel/mount-table/mount-point.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import { WORKER_PROCESS_NAME } from '../kernel/worker-process.ts'
import type { MountRecord } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { findVolumeKind } from '../volume/index.ts'

/** A file system that outlives the unmount of its last mount. */
export interface BusyFileSystem {
  fileSystem: MountedFileSystem
  /** Names the processes that use it, and the remedy. */
  reason: string
  /** All users are modekeep's own processes, by their names. */
  isUsedByWorkers: boolean
}

/** Time in which the kernel releases the files of a process that crashed or is ending. */
const PROCESS_END_WAIT_MS = 300
/** Time for the workers of a crashed call, and for those that check a mount. Without CPU time they end late. */
const WORKER_END_WAIT_MS = 5000

/**
 * Finds the file system that ends with a recorded mount (a disk's, an image's, tmpfs, a server's or a daemon's), or that of
 * a mount without a record. Must be called before the unmount.
 * @returns undefined for a part of another file system, and for mounts of an earlier boot
 */
export function findFileSystemOfMount(
  { host }: Session,
  point: MountPoint | undefined,
  record: MountRecord | undefined,
): MountedFileSystem | undefined {
  if (record === undefined) return point && readMountedFileSystem(host, point, false)
  const kind = findVolumeKind(record.request.fsType)
  if (kind === undefined || kind.root === 'source' || record.boot !== host.bootId()) return undefined
  const { mounted } = record
  if (!kind.isDisk) return mounted && { ...mounted, devices: [] }
  // Records of earlier versions have no devices.
  if (mounted?.devices === undefined) return point && readMountedFileSystem(host, point, true)
  return { ...mounted, devices: mounted.devices }
}

function readMountedFileSystem(host: Host, point: MountPoint, isDisk: boolean): MountedFileSystem | undefined {
  const { inodes, blocks } = host
  const stat = statMountPointUnsynced(host, point)
  if (stat === undefined || stat === 'broken' || !stat.mountRoot || !(isDisk || isDiskDevice(stat.device)))
    return undefined
  const root = inodes.openEntry(point.parent, point.name)
  using _ = deferHandleClose(inodes, root)
  const { device, mountId } = stat
  return { devices: blocks.devicesOf(root), device, mountId: String(mountId), namespace: host.mountNamespace() }
}

/**
 * Finds the users that keep the file system busy, after a short wait for those that are ending. Must be called after the
 * unmount.
 * @param wasInUse the kernel refused to unmount a file system without a device: only then its users are searched
 */
export async function findBusyFileSystemAfterUnmount(
  session: Session,
  fileSystem: MountedFileSystem | undefined,
  record: MountRecord | undefined,
  wasInUse = false,
): Promise<BusyFileSystem | undefined> {
  const { host, config } = session
  const { source, busySince } = record ?? {}
  if (fileSystem === undefined || !(hasBlockDevice(fileSystem) || wasInUse || busySince !== undefined)) return undefined
  if (findBusyFileSystem(host, fileSystem, source) === undefined) return undefined
  // A check of a file system without a device reads all of /proc, so it is made once, at the end.
  const isOver = () => hasBlockDevice(fileSystem) && !isAnyDeviceClaimed(host, fileSystem)
  const settle = async (ms: number) => {
    const until = performance.now() + ms
    await retryUntilDefined(() => isOver() || performance.now() > until || undefined)
    return findBusyFileSystem(host, fileSystem, source)
  }
  const busy = await settle(PROCESS_END_WAIT_MS)
  const mayFail = hasBlockDevice(fileSystem) && config.busyUnmountSeconds > 0
  return busy?.isUsedByWorkers && mayFail ? settle(WORKER_END_WAIT_MS) : busy
}

const hasBlockDevice = ({ devices }: MountedFileSystem) => devices.length > 0

/**
 * Checks the devices or, without one, the processes that use the file system, and never its name. A file system that has
 * another mount is not busy: the unmount of that mount ends it.
 */
export function findBusyFileSystem(
  host: Host,
  fileSystem: MountedFileSystem,
  source: string | undefined,
): BusyFileSystem | undefined {
  const isDisk = hasBlockDevice(fileSystem)
  if (isDisk && !isAnyDeviceClaimed(host, fileSystem)) return undefined
  const { isMounted, processes, copyNamespaces } = host.blocks.findUsers(fileSystem)
  // The last user may have ended meanwhile.
  if (isMounted || (processes.length === 0 && !(isDisk && isAnyDeviceClaimed(host, fileSystem)))) return undefined
  const [volume, users] = [source ? quoteValue(source) : 'the volume', formatProcessNames(processes)]
  const reason = isDisk
    ? `the file system of ${volume} is unmounted, but still in use by ${users}: end that use before another node mounts it`
    : `the file system of ${volume} is unmounted, but still in use by ${users}: it ends with that use`
  const isUsedByWorkers = processes.length > 0 && processes.every(({ name }) => name === WORKER_PROCESS_NAME)
  return { fileSystem: isDisk ? fileSystem : { ...fileSystem, copyNamespaces }, reason, isUsedByWorkers }
}

const isAnyDeviceClaimed = ({ blocks }: Host, { devices }: MountedFileSystem) =>
  devices.some((device) => blocks.isClaimed(device))

const MAX_NAMED_PROCESSES = 5

function formatProcessNames(processes: readonly NamedProcess[]): string {
  if (processes.length === 0) return 'no process that can be seen (such as a loop device or a swap file in it)'
  const named = processes.slice(0, MAX_NAMED_PROCESSES).map(({ pid, name }) => `process ${pid} (${quoteValue(name)})`)
  const more = processes.length - named.length
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/**
 * Adds the facts that a later check of the file system needs.
 * @returns the record of an unmounted volume whose file system is busy
 */
export function recordBusyFileSystem(
  { host }: Session,
  record: MountRecord,
  { fileSystem }: BusyFileSystem,
): MountRecord {
  const { mounted, busySince = host.monotonicMs() } = record
  return {
    ...record,
    busySince,
    ...(mounted && { mounted: { ...mounted, ...pickFileSystemIdentity(fileSystem) } }),
  }
}

const pickFileSystemIdentity = ({ devices, copyNamespaces = [] }: MountedFileSystem) =>
  devices.length > 0 ? { devices: [...devices] } : { copyNamespaces: [...copyNamespaces] }

/**
 * Fails the unmount of a disk or an image while it is in use.
 * @param busySince the recorded time; undefined if it could not be recorded: then nothing is refused, because the refusal would never end
 * @throws {Refusal} until `busyUnmountSeconds` have passed
 */
export function refuseBusyUnmount(
  { host, config }: Session,
  { fileSystem, reason }: BusyFileSystem,
  busySince: number | undefined,
): void {
  // Only a disk or an image can be mounted by another node meanwhile, and damaged.
  if (busySince === undefined || !hasBlockDevice(fileSystem)) return
  const now = host.monotonicMs()
  const leftMs = busySince + config.busyUnmountSeconds * 1000 - now
  if (leftMs <= 0 || busySince > now) return
  throw Refusal.of('unmount-busy', `${reason}; otherwise the unmount succeeds in ${Math.ceil(leftMs / 1000)} s`)
}
