import {
  type FileSystemUsers,
  formatDeviceId,
  getErrno,
  type Handle,
  isDiskDevice,
  type MountedFileSystem,
  type NamedProcess,
} from '../host.ts'
import { nodeFs as fs } from '../read-file.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { listBtrfsDevices } from './backing.ts'
import { findDeviceNodePath, formatDeviceNumbers, readDeviceNumbers, readKernelText } from './block-devices.ts'
import { deferDescriptorClose } from './open.ts'
import { listProcessIds, readMountNamespace } from './processes.ts'
import { statMagicLink, statUnsynced } from './statx.ts'

/** A mount namespace and its processes. */
interface MountNamespace {
  name: string
  table: string
  pids: number[]
}

export function findFileSystemUsers(fileSystem: MountedFileSystem): FileSystemUsers {
  const pids = listProcessIds()
  const namespaces = listMountNamespaces(pids)
  const ownNamespace = readMountNamespace('self')
  const nodeNamespace = namespaces.find(({ pids }) => pids.includes(1))
  const nodeRoots = namespaces
    .filter(({ name }) => name === ownNamespace || name === nodeNamespace?.name)
    .map(({ table }) => parseRootMount(table))
  const isMountedIn = createMountTableMatcher([
    ...fileSystem.devices.map(parseDeviceNumbers),
    formatDeviceId(fileSystem.device),
  ])
  const { copyNamespaces: recorded } = fileSystem
  const mountedNamespaces = namespaces.filter(
    ({ name, table }) => (recorded?.includes(name) ?? true) && isMountedIn(table),
  )
  const isUnmountedByOthers = ({ name, table }: MountNamespace) =>
    name === ownNamespace ||
    name === nodeNamespace?.name ||
    name === fileSystem.namespace ||
    !nodeRoots.includes(parseRootMount(table))
  if (mountedNamespaces.some(isUnmountedByOthers)) return { isMounted: true, processes: [], copyNamespaces: [] }
  const copyPids = new Set(mountedNamespaces.flatMap(({ pids }) => pids))
  const usesFileSystem = createFileSystemUsageMatcher(fileSystem, namespaces)
  const users = pids.filter((pid) => copyPids.has(pid) || usesFileSystem(pid))
  const copyNamespaces = mountedNamespaces.map(({ name }) => name)
  return { isMounted: false, processes: users.flatMap(readProcessWithName), copyNamespaces }
}

function listMountNamespaces(pids: readonly number[]): MountNamespace[] {
  const byName = new Map<string, MountNamespace>()
  for (const pid of pids) {
    const name = readMountNamespace(pid)
    if (name === undefined) continue
    const existing = byName.get(name)
    if (existing !== undefined) {
      existing.pids.push(pid)
      continue
    }
    // An ending process has no mount table, but another process of its namespace may have one.
    const table = readKernelText(`/proc/${pid}/mountinfo`) ?? ''
    if (table !== '') byName.set(name, { name, table, pids: [pid] })
  }
  return [...byName.values()]
}

/** Finds mounts of devices. btrfs has a device number of its own and names its device as source. */
function createMountTableMatcher(devices: readonly string[]): (table: string) => boolean {
  return (table) =>
    table.split('\n').some((line) => {
      const [, , device = ''] = line.split(' ', 3)
      if (devices.includes(device)) return true
      const source = / - btrfs (\/dev\/[^ ]+) /.exec(line)?.[1]
      return device.startsWith('0:') && source !== undefined && isDeviceNodeAmong(source, devices)
    })
}

function isDeviceNodeAmong(path: string, devices: readonly string[]): boolean {
  const stat = tolerateSystemErrors(() => fs.statSync(path))
  return stat?.isBlockDevice() === true && devices.includes(formatDeviceNumbers(stat))
}

/** A container's root differs from the node's. A private copy of the node's mounts has the node's root. */
function parseRootMount(table: string): string {
  const [, device = '', root = ''] = /^\d+ \d+ ([^ ]+) ([^ ]+) \/ /m.exec(table) ?? []
  return `${device} ${root}`
}

/**
 * Matches processes with an open file, a working directory, a root or a program in the file system. A link of /proc
 * leads to the inode without a lookup, but NFS queries its server even then. While an NFS server is in use, only open
 * files are matched, by the id of their mount.
 */
function createFileSystemUsageMatcher(
  { device, mountId, tableId, copyNamespaces }: MountedFileSystem,
  namespaces: readonly MountNamespace[],
): (pid: number) => boolean {
  const listOpen = (pid: number) => tolerateSystemErrors(() => fs.readdirSync(`/proc/${pid}/fd`)) ?? []
  if (hasNfsFileSystems()) {
    // The mount is in no table any more: another mount has its id there.
    if (namespaces.some(({ table }) => new RegExp(`^${tableId} `, 'm').test(table))) return () => false
    const line = new RegExp(`^mnt_id:\\s*${tableId}$`, 'm')
    const isOnMount = (file: string) => line.test(readKernelText(file) ?? '')
    return (pid) => listOpen(pid).some((fd) => isOnMount(`/proc/${pid}/fdinfo/${fd}`))
  }
  const isOnFileSystem = (link: string) => {
    const stat = tolerateSystemErrors(() => statMagicLink(link))
    if (stat === undefined) return false
    const [isOnDevice, isOnMount] = [stat.device === device, String(stat.mountId) === mountId]
    // Before Linux 6.8 the kernel reuses ids of mounts, as it does device numbers: one match alone proves nothing.
    return copyNamespaces === undefined ? isOnDevice || isOnMount : isOnDevice && isOnMount
  }
  return (pid) =>
    ['cwd', 'root', 'exe'].some((name) => isOnFileSystem(`/proc/${pid}/${name}`)) ||
    listOpen(pid).some((fd) => isOnFileSystem(`/proc/${pid}/fd/${fd}`))
}

/** The kernel lists all NFS file systems here, including those that no mount table shows. */
function hasNfsFileSystems(): boolean {
  const volumes = readKernelText('/proc/fs/nfsfs/volumes') ?? ''
  return volumes.split('\n').length > 1
}

/** Reads the process's name from the kernel. Its arguments are in its memory, so reading them may wait for a daemon. */
function readProcessWithName(pid: number): NamedProcess[] {
  const name = readKernelText(`/proc/${pid}/comm`)
  return name === undefined ? [] : [{ pid, name }]
}

const { O_EXCL, O_NONBLOCK, O_RDONLY } = fs.constants

export function listFileSystemDevices(handle: Handle): string[] {
  const { device } = statUnsynced(handle)
  if (isDiskDevice(device)) return [appendDiskSequence(formatDeviceId(device))]
  const directories = tolerateSystemErrors(() => listBtrfsDevices(handle)) ?? []
  if (directories === 'in doubt') return []
  return directories.flatMap((directory) => {
    const numbers = readKernelText(`${directory}/dev`)
    return numbers === undefined ? [] : [appendDiskSequence(numbers)]
  })
}

/** Returns the `major:minor` of a name from `listFileSystemDevices`. */
function parseDeviceNumbers(name: string): string {
  return name.split(' ', 1)[0] ?? ''
}

/**
 * Since Linux 5.15 the kernel numbers each disk and each attachment of a loop device (`diskseq`). Older kernels only
 * have the path of a loop device's file.
 */
function appendDiskSequence(numbers: string): string {
  const directory = `/sys/dev/block/${numbers}`
  for (const file of ['diskseq', '../diskseq', 'loop/backing_file']) {
    const sequence = readKernelText(`${directory}/${file}`)
    if (sequence) return `${numbers} ${sequence}`
  }
  return numbers
}

/**
 * A mounted file system claims its device, as every exclusive open does, and the kernel rejects a second claim. This
 * claim ends at once. Other readers of the device do not conflict.
 */
export function isDeviceClaimed(name: string): boolean {
  if (appendDiskSequence(parseDeviceNumbers(name)) !== name) return false
  const numbers = parseDeviceNumbers(name)
  try {
    const device = fs.openSync(findDeviceNodePath(numbers), O_RDONLY | O_EXCL | O_NONBLOCK)
    using _ = deferDescriptorClose(device)
    if (readDeviceNumbers(device as Handle) === numbers) return false
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    if (/^(ENXIO|ENODEV|ENOMEDIUM)$/.test(code)) return false
    if (code === 'EBUSY') return appendDiskSequence(numbers) === name && !hasHolderDevices(numbers)
  }
  // A container may lack the node's /dev. AUTOCLEAR detaches a loop device after its last user.
  return fs.existsSync(`/sys/dev/block/${numbers}/loop`)
}

/** Checks whether a device mapper or RAID device uses it. */
function hasHolderDevices(numbers: string): boolean {
  return (tolerateSystemErrors(() => fs.readdirSync(`/sys/dev/block/${numbers}/holders`)) ?? []).length > 0
}
