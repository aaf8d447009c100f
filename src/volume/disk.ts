import { resolve } from 'node:path'
import type { VolumeKindRequest } from '../config/request.ts'
import type { VolumeSource } from '../config/source.ts'
import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import {
  deferHandleClose,
  FILE_TYPE_MASK,
  getErrno,
  type Handle,
  type Host,
  isDirectory,
  REGULAR_FILE_TYPE,
  refuseOnErrno,
  SYMLINK_TYPE,
  tolerateErrno,
} from '../kernel/host.ts'
import { openSubPath } from '../kernel/path/open-sub-path.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import {
  explainDiskMountErrors,
  isBlockDevice,
  listDiskMounts,
  type MountableDisk,
  openMountableDevice,
  refuseDiskMountedByNode,
  refuseDuplicateBtrfsUuid,
  refuseOtherDiskContent,
} from './disk-device.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'
import {
  createLazyOptionRules,
  createMountOptionsFault,
  createValueRule,
  createWordRules,
  filterFileSystemOptions,
  findOptionFaults,
  type OptionRules,
  parseOptionName,
} from './kind/options.ts'
import { findSourceFaults, getNodeSourcePath, openNodeSource, openSourceWithoutLinks } from './kind/source-path.ts'

interface DiskKindRules {
  name: string
  /** Permitted options. None of them names another device, stops the node at an error, or affects other parts of it. */
  options: () => OptionRules
  /** The option that skips the log's replay, for a read-only device: the volume may then look inconsistent. */
  withoutLog?: string
  /** The option that is added if the pod sets none of that name. */
  always?: string
  isReadOnly?: true
}

/** mount(8), ext4(5), xfs(5), btrfs(5) */
const DISK_KIND_RULES: readonly DiskKindRules[] = [
  {
    name: 'ext4',
    options: createLazyOptionRules(() => [
      createValueRule('data=journal', /ordered|journal/),
      createValueRule('errors=remount-ro', /remount-ro|continue/),
      ...createWordRules('discard', 'noload'),
    ]),
    withoutLog: 'noload',
    // Without the option the disk's superblock chooses the reaction to an error, which may be a panic.
    always: 'errors=remount-ro',
  },
  {
    name: 'xfs',
    options: createLazyOptionRules(() => createWordRules('nouuid', 'noquota', 'discard', 'norecovery')),
    withoutLog: 'norecovery',
  },
  {
    name: 'btrfs',
    options: createLazyOptionRules(() => [
      createValueRule('subvol=data', /\/?[^/]+(\/[^/]+)*/),
      createValueRule('subvolid=256', /[1-9][0-9]{0,17}/),
      createValueRule('compress=zstd', /(no|zlib|lzo|zstd)(:[0-9]{1,2})?/),
      createValueRule('rescue=nologreplay', /nologreplay/),
      ...createWordRules('discard'),
    ]),
    withoutLog: 'rescue=nologreplay',
  },
  { name: 'squashfs', options: createLazyOptionRules(() => []), isReadOnly: true },
]

/** A file system on a disk of the node, or in an image file. */
function createDiskKind(rules: DiskKindRules): VolumeKind {
  return {
    name: rules.name,
    isDisk: true,
    persistent: true,
    walk: rules.isReadOnly ? 'nothing can be changed' : true,
    root: 'file system',
    optionRules: rules.options,
    faults: (request, config) => [
      ...findSourceFaults(request, config, 'block device or image file'),
      ...findOptionFaults(rules.name, request.mountOptions, rules.options()),
      ...findDiskWriteFaults(rules, request),
    ],
    openSource: (host, { source }) => openDiskSource(host, source),
    async openTree({ host, request, source, stateDir, isVolume }) {
      if (source === undefined) throw new Error(`no source for ${request.directory}`)
      const readOnly = request.readOnly || rules.isReadOnly === true
      const path = getNodeSourcePath(request.source)
      const device = await openMountableDevice(host, path, source, readOnly, stateDir)
      using _device = deferHandleClose(host.inodes, device)
      const disk = { host, device, fsType: rules.name, shown: quoteValue(path) }
      refuseOtherDiskContent(disk)
      refuseDiskMountedByNode(disk, isVolume)
      const tree = await mountDiskDevice(disk, listFileSystemOptions(rules, request), readOnly)
      using _tree = deferHandleClose(host.inodes, tree)
      refuseDuplicateBtrfsUuid(disk, tree)
      return request.subPath === undefined ? host.inodes.duplicate(tree) : cloneSubPath(host, tree, request.subPath)
    },
  }
}

function findDiskWriteFaults(rules: DiskKindRules, { mountOptions, readOnly }: VolumeKindRequest): Fault[] {
  if (rules.isReadOnly && mountOptions.includes('rw')) {
    return [createMountOptionsFault('has rw', `${rules.name} is always read-only, leave it out`)]
  }
  if (readOnly || rules.withoutLog === undefined || !mountOptions.includes(rules.withoutLog)) return []
  return [
    createMountOptionsFault(`has ${rules.withoutLog}, which is for read-only volumes`, 'set readOnly, or leave it out'),
  ]
}

function listFileSystemOptions({ always }: DiskKindRules, { mountOptions }: VolumeKindRequest): string[] {
  const options = filterFileSystemOptions(mountOptions)
  const isGiven = always === undefined || options.some((option) => parseOptionName(option) === parseOptionName(always))
  return isGiven ? options : [...options, always]
}

/** Mounts read-only if requested. If the file system is already mounted for writing, only the mount is read-only. */
async function mountDiskDevice(disk: MountableDisk, options: readonly string[], readOnly: boolean): Promise<Handle> {
  const { host, device, fsType } = disk
  const create = (more: string[]) => host.mounts.createTree(fsType, [...options, ...more], device)
  const attempt = () => {
    try {
      return create(readOnly ? ['ro'] : [])
    } catch (error) {
      if (!readOnly || getErrno(error) !== 'EBUSY' || listDiskMounts(disk)[0]?.superOptions.includes('ro')) throw error
      return create([])
    }
  }
  // The check after an unmount may claim the device at this moment.
  const until = performance.now() + MAX_DISK_CLAIM_MS
  const isHeldExclusively = (error: unknown) =>
    getErrno(error) === 'EBUSY' && performance.now() < until && listDiskMounts(disk).length === 0
  const result = await retryUntilDefined(() => {
    try {
      return { tree: attempt() }
    } catch (error) {
      return isHeldExclusively(error) ? undefined : { error }
    }
  })
  return explainDiskMountErrors(disk, () => {
    if ('error' in result) throw result.error
    return result.tree
  })
}

const MAX_DISK_CLAIM_MS = 100

/** Clones a part of a detached mount, which the kernel permits since Linux 6.15. */
function cloneSubPath({ inodes, mounts }: Host, tree: Handle, subPath: string): Handle {
  const part = openSubPath(inodes, tree, subPath)
  using _ = deferHandleClose(inodes, part)
  if (!isDirectory(inodes.stat(part))) {
    throw Refusal.of(
      'sub-path-unsupported',
      `subPath ${quoteValue(subPath)} is not a directory`,
      'the subPath of a disk or an image must be one',
    )
  }
  return refuseOnErrno(
    () => mounts.cloneTree(part),
    () => ({
      EINVAL: createFault(
        'sub-path-unsupported',
        `subPath ${quoteValue(subPath)} of a disk or an image needs Linux 6.15 or newer on the node`,
        `leave subPath out, and use the container's own subPath`,
      ),
    }),
  )
}

export const diskKinds: readonly VolumeKind[] = DISK_KIND_RULES.map(createDiskKind)

const UDEV_LINK_FORM = /^\/dev\/(disk\/[^/]+|mapper)\/[^/]+$/
const OTHERS_WRITE_MODE_BITS = 0o022

/**
 * Opens a block device's node or an image file by a path without links. Only udev's own links are followed.
 * @throws {Refusal}
 */
function openDiskSource(host: Host, requestedSource: VolumeSource): OpenedSource {
  const source = getNodeSourcePath(requestedSource)
  const path = UDEV_LINK_FORM.test(source) ? resolveUdevLink(host, source) : source
  return openNodeSource(host, path, {
    remedy: 'attach the disk, or create the image file',
    fault(stat) {
      if ((stat.mode & FILE_TYPE_MASK) === REGULAR_FILE_TYPE) return undefined
      if (!isBlockDevice(stat)) return 'is neither a block device nor an image file: name one'
      // Containers may create device nodes in their volumes (CAP_MKNOD), also of the node's own disks.
      if (path.startsWith('/dev/')) return undefined
      return 'is a device node outside /dev, which a pod may have made: name the device as it is in /dev'
    },
  })
}

/** Resolves a link of udev's. Returns the path itself if it is no link or missing: the later open reports that. */
function resolveUdevLink(host: Host, source: string): string {
  const { inodes } = host
  const slash = source.lastIndexOf('/')
  const above = source.slice(0, slash)
  const directory = openSourceWithoutLinks(host, above, { remedy: 'attach the disk' })
  using _directory = deferHandleClose(inodes, directory)
  const link = tolerateErrno('ENOENT ENOTDIR ENAMETOOLONG', () =>
    inodes.openEntry(directory, Buffer.from(source.slice(slash + 1))),
  )
  if (link === undefined) return source
  using _link = deferHandleClose(inodes, link)
  const { mode, uid } = inodes.stat(link)
  if ((mode & FILE_TYPE_MASK) !== SYMLINK_TYPE) return source
  const holder = inodes.stat(directory)
  const target = resolve(above, Buffer.from(inodes.readLink(link)).toString())
  const isDevice = target.startsWith('/dev/') && !target.startsWith('/dev/shm/')
  if (isDevice && uid === 0 && holder.uid === 0 && (holder.mode & OTHERS_WRITE_MODE_BITS) === 0) return target
  throw Refusal.of(
    'disk-type',
    `source ${quoteValue(source)} is a link that is not udev's, or leads out of /dev`,
    'write the real path',
  )
}
