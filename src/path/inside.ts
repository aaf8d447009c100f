import {
  DIRECTORY,
  errorCode,
  FIFO,
  FILE_TYPE,
  type Handle,
  type Inodes,
  orClosed,
  REGULAR,
  SOCKET,
} from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { pathSizeFaults } from './input-sizes.ts'
import { sentences } from './refusals.ts'
import { openByParts } from './steps.ts'

const MOUNTABLE: ReadonlySet<number> = new Set([DIRECTORY, REGULAR, SOCKET, FIFO])

/** What is wrong with the text of a subPath, before anyone looks at the source. */
export function subPathFaults(subPath: string): string[] {
  if (subPath === '') return ['option "subPath" is empty: name a part of the source, or leave subPath out']
  const tooLong = pathSizeFaults('option "subPath"', subPath)
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
 * Opens what a pod names inside its source, to be mounted by the handle (O_PATH: nothing is read, no FIFO waits). Links
 * are followed and mounts crossed as long as they stay inside, whatever is renamed at the same time. A directory that
 * is moved out of the source after it was entered still counts as inside.
 * @returns a directory, a file, a socket or a FIFO
 * @throws {Refusal} for the pod's author
 * @throws {SystemError} for what is no fault of his
 */
export function openInside(inodes: Inodes, root: Handle, subPath: string): Handle {
  const faults = subPathFaults(subPath)
  if (faults.length > 0) throw new Refusal(faults)
  return orClosed(inodes, openAtOnce(inodes, root, subPath) ?? openByParts(inodes, root, subPath), (handle) => {
    const { mode } = inodes.stat(handle)
    if (!MOUNTABLE.has(mode & FILE_TYPE)) throw new Refusal(sentences(subPath).wrongKind(mode))
    return handle
  })
}

/** Undefined where the kernel does not give it, for any reason: the way by parts follows no link that it refuses. */
function openAtOnce(inodes: Inodes, root: Handle, subPath: string): Handle | undefined {
  try {
    return inodes.openBeneath(root, subPath)
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}
