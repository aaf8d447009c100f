import type { Host } from '../host/host.ts'
import { isKernelInterface } from '../mount-table/file-system.ts'
import { findPathsToSame } from '../mount-table/tree-location.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { VolumeByHand } from './by-hand.ts'

/** Directories of a Linux system that no volume is (Filesystem Hierarchy Standard 3.0, chapters 3 to 5), with all in them. */
const PROGRAMS = /^\/(bin|boot|dev|etc|lib(32|64|x32)?|sbin|usr)(\/|$)/
/** Those in which volumes may well lie. */
const ROOTS = /^\/(home|media|mnt|opt|root|run|srv|tmp|var(\/(cache|lib|log|run|spool|tmp|lib\/[^/]*kubelet))?)?$/

/** Whether a directory, absolute and normal, is one of the system and not of somebody's data. */
export const isOfSystem = (directory: string): boolean => PROGRAMS.test(directory) || ROOTS.test(directory)

/**
 * Refuses a directory of the system, by whatever path of the node it is named, unless the person is sure.
 * @throws {Refusal}
 */
export function refuseOfSystem({ mounts }: Pick<Host, 'mounts'>, directory: string, isSure = false): void {
  if (isSure) return
  const paths = isOfSystem(directory) ? [directory] : findPathsToSame(mounts.table(), directory)
  const found = paths.find(isOfSystem)
  if (found === undefined) return
  const asOther = found === directory ? '' : ` (${quoted(found)} by another mount)`
  throw new Refusal(
    `directory ${quoted(directory)} is one of the system${asOther}: look at it with "modekeep plan" first, and if all of it is to be given to the group, add --yes`,
  )
}

/**
 * Refuses a directory that holds modekeep's log or configuration, by whatever path, unless the person is sure: the group could
 * replace these.
 * @throws {Refusal}
 */
export function refuseOwnFile({ directory, ownFile }: VolumeByHand, isSure = false): void {
  if (isSure || ownFile === undefined) return
  throw new Refusal(
    `directory ${quoted(directory)} holds modekeep's ${ownFile.what} ${quoted(ownFile.file)}: name another directory, or add --yes if all of it is to be given to the group`,
  )
}

/** No option overrides it: owners of these files decide who may use the kernel. @throws {Refusal} */
export function refuseOfKernel({ directory, fsType }: Pick<VolumeByHand, 'directory' | 'fsType'>): void {
  if (!isKernelInterface(fsType)) return
  throw new Refusal(
    `directory ${quoted(directory)} is on ${fsType}, a file system of the kernel that holds no data: name a directory of a volume`,
  )
}
