import { quoted, Refusal } from '../errors/refusal.ts'
import {
  DIRECTORY,
  errorCode,
  FIFO,
  FILE_TYPE,
  type Handle,
  type Inodes,
  REGULAR,
  SOCKET,
  useOrClose,
} from '../host/host.ts'
import { checkPathSize } from './input-sizes.ts'
import { openByComponents } from './open-by-components.ts'
import { createSubPathMessages } from './sub-path-messages.ts'

const MOUNTABLE: ReadonlySet<number> = new Set([DIRECTORY, REGULAR, SOCKET, FIFO])

/** Checks the text of a subPath, before the source is opened. @returns the faults */
export function checkSubPath(subPath: string): string[] {
  if (subPath === '') return ['option "subPath" is empty: name a part of the source, or leave subPath out']
  const tooLong = checkPathSize('option "subPath"', subPath)
  if (tooLong.length > 0) return tooLong
  const parts = subPath.split('/')
  if (subPath.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..')) {
    return [
      `option "subPath" is ${quoted(subPath)}: write a path inside the source, without a leading slash, "..", ".", "//" or a trailing slash`,
    ]
  }
  return []
}

/**
 * Opens a subPath inside the source, to be mounted by the handle. It is opened with O_PATH: no data is read, and a FIFO does
 * not block. Links are followed and mounts are crossed as long as they stay inside, even during concurrent renames. A
 * directory that is moved out of the source after it was entered still counts as inside.
 * @returns a directory, a file, a socket or a FIFO
 * @throws {Refusal} for a fault that the pod's author can correct
 * @throws {SystemError} for any other failure
 */
export function openSubPath(inodes: Inodes, root: Handle, subPath: string): Handle {
  const faults = checkSubPath(subPath)
  if (faults.length > 0) throw new Refusal(faults)
  return useOrClose(
    inodes,
    openWithOpenat2(inodes, root, subPath) ?? openByComponents(inodes, root, subPath),
    (handle) => {
      const { mode } = inodes.stat(handle)
      if (!MOUNTABLE.has(mode & FILE_TYPE)) throw new Refusal(createSubPathMessages(subPath).wrongKind(mode))
      return handle
    },
  )
}

/** Returns undefined if openat2(2) fails for any reason. `openByComponents` then follows no link that the kernel refuses. */
function openWithOpenat2(inodes: Inodes, root: Handle, subPath: string): Handle | undefined {
  try {
    return inodes.openBeneath(root, subPath)
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}
