import { quoteValue, Refusal } from '../errors/refusal.ts'
import type { Host } from '../kernel/host.ts'
import { isKernelInterfaceFsType } from '../kernel/mount-table/mountinfo.ts'
import { findPathsToSameLocation } from '../kernel/mount-table/tree-location.ts'
import type { NodeDirectoryVolume } from './volume-by-hand.ts'

/**
 * Directories of a Linux system that are never volumes, and neither is any directory below them (Filesystem Hierarchy
 * Standard 3.0, chapters 3 to 5).
 */
const SYSTEM_TREE_PATTERN = /^\/(bin|boot|dev|etc|lib(32|64|x32)?|sbin|usr)(\/|$)/
/** Directories of a Linux system that may contain volumes, but are none. */
const SYSTEM_DIRECTORY_PATTERN =
  /^\/(home|media|mnt|opt|root|run|srv|tmp|var(\/(cache|lib|log|run|spool|tmp|lib\/[^/]*kubelet))?)?$/

/** Returns whether a directory belongs to the system, not to user data. @param directory absolute and normalized */
export const isSystemDirectory = (directory: string): boolean =>
  SYSTEM_TREE_PATTERN.test(directory) || SYSTEM_DIRECTORY_PATTERN.test(directory)

/**
 * Refuses a directory of the system, under any of its paths on the node, unless the operator confirms it.
 * @throws {Refusal}
 */
export function refuseSystemDirectory({ mounts }: Pick<Host, 'mounts'>, directory: string, isSure = false): void {
  if (isSure) return
  const paths = isSystemDirectory(directory) ? [directory] : findPathsToSameLocation(mounts.table(), directory)
  const found = paths.find(isSystemDirectory)
  if (found === undefined) return
  const asOther = found === directory ? '' : ` (${quoteValue(found)} by another mount)`
  throw Refusal.of(
    'directory-system',
    `directory ${quoteValue(directory)} is one of the system${asOther}`,
    `look at it with "modekeep plan" first, and if all of it is to be given to the group, add --yes`,
  )
}

/**
 * Refuses a directory that contains modekeep's log or configuration, under any path, unless the operator confirms it:
 * the group could replace these files.
 * @throws {Refusal}
 */
export function refuseOwnLogOrConfig({ directory, ownFile }: NodeDirectoryVolume, isSure = false): void {
  if (isSure || ownFile === undefined) return
  throw Refusal.of(
    'directory-system',
    `directory ${quoteValue(directory)} holds modekeep's ${ownFile.what} ${quoteValue(ownFile.file)}`,
    `name another directory, or add --yes if all of it is to be given to the group`,
  )
}

/** Refuses a kernel interface, even with --yes: its owners decide who may use the kernel. @throws {Refusal} */
export function refuseKernelFileSystem({ directory, fsType }: Pick<NodeDirectoryVolume, 'directory' | 'fsType'>): void {
  if (!isKernelInterfaceFsType(fsType)) return
  throw Refusal.of(
    'directory-system',
    `directory ${quoteValue(directory)} is on ${fsType}, a file system of the kernel that holds no data`,
    `name a directory of a volume`,
  )
}
