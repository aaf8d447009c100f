import { BLOCK_DEVICE, FILE_TYPE, type Host, REGULAR, SYMLINK } from '../../host/host.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { Source } from '../../request/source.ts'
import type { OpenedSource } from '../kind/kind.ts'
import { openLinkFree, pathOf } from '../kind/source-path.ts'

/** Where udev names devices by links. */
const NAMES = /^\/dev\/(disk\/[^/]+|mapper)\/[^/]+$/
const WRITABLE_BY_OTHERS = 0o022

/**
 * Opens the node of a block device, or an image file, by a path without links, but for udev's own names.
 * @throws {Refusal}
 */
export function openBlockSource(host: Host, asked: Source): OpenedSource {
  const source = pathOf(asked)
  const path = NAMES.test(source) ? deviceNamed(host, source) : source
  const handle = openLinkFree(host, path, 'source', 'attach the disk, or create the image file')
  try {
    const stat = host.inodes.stat(handle)
    const type = stat.mode & FILE_TYPE
    if (type !== REGULAR && type !== BLOCK_DEVICE) {
      throw new Refusal(`source ${quoted(source)} is neither a block device nor an image file: name one`)
    }
    // Containers may make device nodes in their volumes (CAP_MKNOD), those of the node's own disks too.
    if (type === BLOCK_DEVICE && !path.startsWith('/dev/')) {
      throw new Refusal(
        `source ${quoted(source)} is a device node outside /dev, which a pod may have made: name the device as it is in /dev`,
      )
    }
    return { handle, stat, path }
  } catch (error) {
    host.inodes.close(handle)
    throw error
  }
}

/** What a name of udev's leads to; the path itself where it is no link. */
function deviceNamed(host: Host, source: string): string {
  const slash = source.lastIndexOf('/')
  const directory = openLinkFree(host, source.slice(0, slash), 'source', 'attach the disk')
  try {
    const name = Buffer.from(source.slice(slash + 1))
    const link = openName(host, directory, name)
    if (link === undefined) return source
    try {
      if ((host.inodes.stat(link).mode & FILE_TYPE) !== SYMLINK) return source
      const { uid, mode } = host.inodes.stat(directory)
      const target = joined(source.slice(0, slash), Buffer.from(host.inodes.readLink(link)).toString())
      if (uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && host.inodes.stat(link).uid === 0 && isDevice(target)) {
        return target
      }
    } finally {
      host.inodes.close(link)
    }
  } finally {
    host.inodes.close(directory)
  }
  throw new Refusal(`source ${quoted(source)} is a link that is not udev's, or leads out of /dev: write the real path`)
}

function openName({ inodes }: Host, directory: OpenedSource['handle'], name: Uint8Array) {
  try {
    return inodes.openEntry(directory, name)
  } catch {
    // Told by whoever opens the source.
    return undefined
  }
}

const isDevice = (path: string) => path.startsWith('/dev/') && !path.startsWith('/dev/shm/')

function joined(directory: string, target: string): string {
  const parts: string[] = []
  for (const part of (target.startsWith('/') ? target : `${directory}/${target}`).split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}
