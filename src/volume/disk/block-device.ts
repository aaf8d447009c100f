import { BLOCK_DEVICE, errorCode, FILE_TYPE, type Handle, type Host, type Lock } from '../../host/host.ts'
import { waitFor } from '../../host/wait-for.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { OpenedSource } from '../kind/kind.ts'

/**
 * The device to mount: the source itself, or the loop device that shows the image. All mounts of an image share one: two
 * would each write to the image from a cache of its own, and destroy it.
 * @throws {Refusal}
 */
export async function deviceOf(
  host: Host,
  source: string,
  { handle, stat }: OpenedSource,
  readOnly: boolean,
  stateDir: string,
): Promise<Handle> {
  if ((stat.mode & FILE_TYPE) === BLOCK_DEVICE) return openNode(host, source, handle)
  const lock = await lockLoops(host, stateDir)
  try {
    return sharedLoop(host, source, handle, readOnly) ?? attach(host, source, handle, readOnly)
  } finally {
    lock.release()
  }
}

function openNode(host: Host, source: string, node: Handle): Handle {
  try {
    return host.blocks.open(node)
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'ENXIO' && code !== 'ENODEV') throw error
    throw new Refusal(`source ${quoted(source)} is a device that is not there (${code}): attach the disk`)
  }
}

function sharedLoop({ blocks, inodes }: Host, source: string, image: Handle, readOnly: boolean): Handle | undefined {
  const loop = blocks.loopOf(image)
  if (loop === undefined) return undefined
  if (loop.isWhole && (readOnly || !loop.isReadOnly)) return loop.device
  const name = blocks.nameOf(loop.device)
  inodes.close(loop.device)
  throw new Refusal(
    loop.isWhole
      ? `image ${quoted(source)} is in use read-only (${name}), so it cannot be mounted for writing: set readOnly, or wait until that use ends`
      : `a part of image ${quoted(source)} is in use (${name}), and a second device would destroy it: detach that one first`,
  )
}

function attach({ blocks }: Host, source: string, image: Handle, readOnly: boolean): Handle {
  try {
    return blocks.attachLoop(image, readOnly)
  } catch (error) {
    switch (errorCode(error)) {
      case 'EROFS':
      case 'EACCES':
      case 'EPERM':
        throw new Refusal(`image ${quoted(source)} cannot be written (${errorCode(error)}): set readOnly on the volume`)
      case 'ETXTBSY':
        throw new Refusal(`image ${quoted(source)} is in use as a program or as swap: name another one`)
      case 'ENOENT':
      case 'ENXIO':
        throw new Refusal(
          `image ${quoted(source)} needs a loop device, and this node has none (${(error as Error).message}): load the kernel module loop`,
        )
      case 'EBUSY':
        throw new Refusal(
          `image ${quoted(source)} got no loop device, as others take each free one first: it is tried again`,
        )
      default:
        throw error
    }
  }
}

const LOCK = 'loop.lock'

function lockLoops(host: Host, stateDir: string): Promise<Lock> {
  host.files.makeDirectory(stateDir)
  return waitFor(() => host.tryLock(`${stateDir}/${LOCK}`))
}
