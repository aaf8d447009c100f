import { stat } from 'node:fs/promises'
import { createFault, type Fault, prefixFault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { checkFieldSize } from '../../kernel/path/input-sizes.ts'
import { parseMountDirectory } from '../flexvolume/protocol.ts'
import { createNotPublishedFailure } from './worker-tasks.ts'

export const findVolumeIdFaults = (volumeId: string) => checkFieldSize('volume_id', volumeId)

/** Parses the volume id and target path of a call. @throws {Refusal} with every fault */
export function parseTargetPath(volumeId: string, path: string): string {
  const faults = [
    ...findVolumeIdFaults(volumeId),
    ...findMissingFieldFaults({ volume_id: volumeId, target_path: path }),
  ]
  const directory = parseRequestPathField('target_path', path, faults)
  if (faults.length > 0) throw new Refusal(faults)
  return directory
}

/**
 * Like `parseTargetPath`, for a stats call. A path where nothing can be published has no volume (csi-sanity uses `some/path`).
 * @throws {Refusal} with every missing field; {CsiCallFailure} NOT_FOUND for an invalid path
 */
export function parseStatsVolumePath(volumeId: string, path: string): string {
  const faults = [
    ...findVolumeIdFaults(volumeId),
    ...findMissingFieldFaults({ volume_id: volumeId, volume_path: path }),
  ]
  if (faults.length > 0) throw new Refusal(faults)
  const directory = parseRequestPathField('volume_path', path, faults)
  if (faults.length > 0) throw createNotPublishedFailure(path)
  return directory
}

export function findMissingFieldFaults(fields: Readonly<Record<string, string>>): Fault[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    value === '' ? [createFault('csi-request', `${name} is missing`, 'name it')] : [],
  )
}

export function parseRequestPathField(field: string, path: string, faults: Fault[]): string {
  if (path === '') return ''
  try {
    return parseMountDirectory(path)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    faults.push(...error.faults.map((fault) => prefixFault(fault, `${field}: `)))
    return ''
  }
}

/** @throws {Refusal} if a target is not below kubelet's pods directory */
export async function refuseTargetOutsidePods(kubeletDirectory: string, directory: string): Promise<void> {
  if (await isBelowPodsDirectory(kubeletDirectory, directory)) return
  throw Refusal.of(
    'csi-target',
    `target_path ${quoteValue(directory)} is not below ${kubeletDirectory}/pods`,
    `give kubelet's --root-dir as --kubelet-dir`,
  )
}

/**
 * Returns whether a target lies below kubelet's pods directory. Other paths to that directory, such as links and bind mounts,
 * are recognized by its inode.
 * @param kubeletDirectory kubelet's --root-dir
 * @param path absolute and normalized
 */
async function isBelowPodsDirectory(kubeletDirectory: string, path: string): Promise<boolean> {
  const pods = `${kubeletDirectory === '/' ? '' : kubeletDirectory}/pods`
  if (path.startsWith(`${pods}/`)) return true
  const parts = path.split('/')
  const prefixes = parts.flatMap((part, at) =>
    part === 'pods' && at < parts.length - 1 ? [parts.slice(0, at + 1).join('/')] : [],
  )
  if (prefixes.length === 0) return false
  const wanted = await findDeviceAndInode(pods)
  if (wanted === undefined) return false
  for (const prefix of prefixes.slice(0, MAX_COMPARED_PODS_PATHS))
    if ((await findDeviceAndInode(prefix)) === wanted) return true
  return false
}

/** Kubelet's paths have one or two directories named `pods`. */
const MAX_COMPARED_PODS_PATHS = 8

async function findDeviceAndInode(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
