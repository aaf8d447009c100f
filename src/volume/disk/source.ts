import { resolve } from 'node:path'
import { createFault } from '../../errors/fault.ts'
import { quoted, Refusal } from '../../errors/refusal.ts'
import {
  BLOCK_DEVICE,
  deferClose,
  FILE_TYPE,
  type Handle,
  type Host,
  REGULAR,
  refuseOnErrno,
  type Stat,
  SYMLINK,
  tolerateErrno,
  useOrClose,
} from '../../host/host.ts'
import type { Source } from '../../request/source.ts'
import { acquireNodeLock } from '../../store/locks.ts'
import type { OpenedSource } from '../kind/kind.ts'
import { getNodePath, openNode, openWithoutLinks } from '../kind/source-path.ts'

/** Directories in which udev creates links to devices. */
const UDEV_NAME = /^\/dev\/(disk\/[^/]+|mapper)\/[^/]+$/
const WRITABLE_BY_OTHERS = 0o022

const isBlockDevice = ({ mode }: Stat) => (mode & FILE_TYPE) === BLOCK_DEVICE

/**
 * Opens a block device's node or an image file by a path without links. Only udev's own links are followed.
 * @throws {Refusal}
 */
export function openBlockSource(host: Host, requestedSource: Source): OpenedSource {
  const source = getNodePath(requestedSource)
  const path = UDEV_NAME.test(source) ? resolveDeviceName(host, source) : source
  return openNode(host, path, {
    remedy: 'attach the disk, or create the image file',
    fault(stat) {
      if ((stat.mode & FILE_TYPE) === REGULAR) return undefined
      if (!isBlockDevice(stat)) return 'is neither a block device nor an image file: name one'
      // Containers may create device nodes in their volumes (CAP_MKNOD), also of the node's own disks.
      if (path.startsWith('/dev/')) return undefined
      return 'is a device node outside /dev, which a pod may have made: name the device as it is in /dev'
    },
  })
}

/** Resolves a link of udev's. Returns the path itself if it is no link or missing: the later open reports that. */
function resolveDeviceName(host: Host, source: string): string {
  const { inodes } = host
  const slash = source.lastIndexOf('/')
  const above = source.slice(0, slash)
  const directory = openWithoutLinks(host, above, { remedy: 'attach the disk' })
  using _directory = deferClose(inodes, directory)
  const link = tolerateErrno('ENOENT ENOTDIR ENAMETOOLONG', () =>
    inodes.openEntry(directory, Buffer.from(source.slice(slash + 1))),
  )
  if (link === undefined) return source
  using _link = deferClose(inodes, link)
  const { mode, uid } = inodes.stat(link)
  if ((mode & FILE_TYPE) !== SYMLINK) return source
  const holder = inodes.stat(directory)
  const target = resolve(above, Buffer.from(inodes.readLink(link)).toString())
  const isDevice = target.startsWith('/dev/') && !target.startsWith('/dev/shm/')
  if (isDevice && uid === 0 && holder.uid === 0 && (holder.mode & WRITABLE_BY_OTHERS) === 0) return target
  throw Refusal.of(
    'disk-type',
    `source ${quoted(source)} is a link that is not udev's, or leads out of /dev`,
    'write the real path',
  )
}

/**
 * Opens the device to mount: the source itself, or the loop device of the image. All mounts of an image share one loop
 * device: two would write to the image from separate caches, and corrupt it.
 * @throws {Refusal}
 */
export async function openDevice(
  host: Host,
  source: string,
  { handle, stat }: OpenedSource,
  readOnly: boolean,
  stateDir: string,
): Promise<Handle> {
  if (isBlockDevice(stat)) {
    return refuseOnErrno(
      () => host.blocks.open(handle),
      (_, code) => ({
        'ENXIO ENODEV': createFault(
          'disk-type',
          `source ${quoted(source)} is a device that does not exist (${code})`,
          `attach the disk`,
        ),
      }),
    )
  }
  using _ = await acquireNodeLock({ host, config: { stateDir } }, 'loop')
  const shown = quoted(source)
  return findSharedLoop(host, shown, handle, readOnly) ?? attachImage(host, shown, handle, readOnly)
}

function findSharedLoop({ blocks, inodes }: Host, shown: string, image: Handle, readOnly: boolean): Handle | undefined {
  const loop = blocks.loopOf(image)
  if (loop === undefined) return undefined
  return useOrClose(inodes, loop.device, (device) => {
    if (loop.isWhole && (readOnly || !loop.isReadOnly)) return device
    const name = blocks.nameOf(device)
    throw new Refusal(
      loop.isWhole
        ? createFault(
            'disk-busy',
            `image ${shown} is in use read-only (${name}), so it cannot be mounted for writing`,
            'set readOnly, or wait until that use ends',
          )
        : createFault(
            'disk-busy',
            `a part of image ${shown} is in use (${name}), and a second device would destroy it`,
            'detach that one first',
          ),
    )
  })
}

function attachImage({ blocks }: Host, shown: string, image: Handle, readOnly: boolean): Handle {
  return refuseOnErrno(
    () => blocks.attachLoop(image, readOnly),
    (words, code) => ({
      'EROFS EACCES EPERM': createFault(
        'disk-read-only',
        `image ${shown} cannot be written (${code})`,
        `set readOnly on the volume`,
      ),
      ETXTBSY: createFault('disk-busy', `image ${shown} is in use as a program or as swap`, `name another one`),
      'ENOENT ENXIO': createFault(
        'kernel-module',
        `image ${shown} needs a loop device, and this node has none (${words})`,
        `load the kernel module loop`,
      ),
      EBUSY: createFault(
        'kernel-module',
        `image ${shown} got no loop device, as other processes took each free one first`,
        `it is tried again`,
      ),
    }),
  )
}
