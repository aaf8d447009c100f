import { basename, dirname } from 'node:path'
import { type LoadedConfig, type NodeConfig, PRIVATE_STATE_DIRECTORIES } from '../../config/defaults.ts'
import type { VolumeKindRequest } from '../../config/request.ts'
import { formatSource, getSourcePath, REMOTE_SOURCE_EXAMPLES, type VolumeSource } from '../../config/source.ts'
import { createFault, createOptionFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  deferHandleClose,
  type Handle,
  type Host,
  isDirectory,
  isDiskDevice,
  refuseOnErrno,
  type Stat,
  useHandleOrClose,
} from '../../kernel/host.ts'
import type { MountTableSnapshot } from '../../kernel/mount-table/mountinfo.ts'
import { createUnresponsiveRefusal, type PathLookups } from '../../kernel/mount-table/responsiveness.ts'
import {
  arePathsNested,
  findLocationChain,
  isLocationWithin,
  type TreeLocation,
  toPathPrefix,
} from '../../kernel/mount-table/tree-location.ts'
import { checkSubPath } from '../../kernel/path/open-sub-path.ts'
import { tolerateSystemErrors } from '../../kernel/system-error.ts'
import type { OpenedSource } from './kind.ts'
import { createSubPathFault } from './options.ts'

export const createSourceFault = (reason: string, remedy: string): Fault =>
  createOptionFault('source-invalid', 'source', reason, remedy)

/** Finds the faults of a source of the node and of its subPath. @param what the permitted kinds of source, for messages */
export function findSourceFaults(
  { source, subPath }: VolumeKindRequest,
  config: NodeConfig,
  what = 'directory',
): Fault[] {
  const ofPart = subPath === undefined ? [] : checkSubPath(subPath)
  const path = formatSource(source)
  if (path === undefined) return [createSourceFault('is missing', `name the ${what} of the node to mount`), ...ofPart]
  return [...findSourcePathFaults(path, config), ...ofPart]
}

/** Finds the faults of a path that do not depend on the node's rules. */
export function findSourcePathFaults(source: string, config: NodeConfig): Fault[] {
  const parts = source.split('/').slice(1)
  const isNormal = source.startsWith('/') && !source.includes('\0')
  if (!isNormal || parts.some((part) => ['', '.', '..'].includes(part))) {
    return [
      createSourceFault(
        `is ${quoteValue(source)}`,
        `write an absolute path without "..", ".", "//" or a trailing slash`,
      ),
    ]
  }
  if (!isPathOverlappingRecords(source, config)) return []
  return [
    createOptionFault(
      'source-protected',
      'source',
      `is ${quoteValue(source)}`,
      'name another directory',
      "it holds modekeep's own records, which no pod may see",
    ),
  ]
}

/** Whether a directory contains modekeep's records, or lies in a directory of records. */
export function isPathOverlappingRecords(path: string, { stateDir }: Pick<NodeConfig, 'stateDir'>): boolean {
  const places = Object.values(PRIVATE_STATE_DIRECTORIES).map((name) => `${stateDir}/${name}`)
  return places.some((place) => arePathsNested(toPathPrefix(path), toPathPrefix(place)))
}

/** A requirement for a source of the node, and its wording in messages. */
export interface SourceRequirement {
  /** Returns the fault of an existing source and its remedy; undefined: none. */
  fault(stat: Stat): string | undefined
  what?: string
  /** The remedy for a missing source. */
  remedy?: string
}

export const DIRECTORY_REQUIREMENT: SourceRequirement = {
  fault: (stat) => (isDirectory(stat) ? undefined : 'is not a directory: name one'),
}

/**
 * Opens a source by a path without links, so that the path, which was compared with the node's rules, is its real
 * location.
 * @throws {Refusal} naming the source and what to do
 */
export function openNodeSource(host: Host, path: string, requirement = DIRECTORY_REQUIREMENT): OpenedSource {
  return createOpenedSource(host, path, requirement, openSourceWithoutLinks(host, path, requirement))
}

/**
 * Like `openNodeSource`, for a caller that must not wait for the path.
 * @throws {Refusal} also if the lookup gets no answer
 */
export async function openNodeSourceWithLookups(
  lookups: PathLookups,
  host: Host,
  path: string,
  requirement = DIRECTORY_REQUIREMENT,
): Promise<OpenedSource> {
  const handle = await lookups.open(path).catch((error) =>
    refuseOnErrno(
      (): never => {
        throw error
      },
      createOpenErrorExplanation(path, requirement),
    ),
  )
  if (handle === undefined) throw createUnresponsiveRefusal(path)
  return createOpenedSource(host, path, requirement, handle)
}

function createOpenedSource(host: Host, path: string, requirement: SourceRequirement, opened: Handle): OpenedSource {
  return useHandleOrClose(host.inodes, opened, (handle) => {
    const stat = host.inodes.stat(handle)
    const fault = requirement.fault(stat)
    if (fault !== undefined)
      throw Refusal.of('source-missing', `${requirement.what ?? 'source'} ${quoteValue(path)} ${fault}`)
    return { handle, stat, path }
  })
}

export function openSourceWithoutLinks(
  { inodes }: Host,
  path: string,
  requirement: Partial<SourceRequirement>,
): Handle {
  return refuseOnErrno(() => inodes.openLinkFree(path), createOpenErrorExplanation(path, requirement))
}

function createOpenErrorExplanation(
  path: string,
  { what = 'source', remedy = 'create the directory' }: Partial<SourceRequirement>,
) {
  const it = `${what} ${quoteValue(path)}`
  return () => ({
    ENOENT: createFault('source-missing', `${it} does not exist on this node`, `${remedy}, or correct the name`),
    ELOOP: createFault(
      'source-link',
      `${it} has a symbolic link in its path, which could lead anywhere`,
      `write the real path`,
    ),
    ENOTDIR: createFault('source-missing', `${it} leads through something that is not a directory`, `correct the name`),
  })
}

/** Returns the path of a source that its kind has accepted as a path of the node. */
export function getNodeSourcePath(source: VolumeSource): string {
  const path = getSourcePath(source)
  if (path === undefined) throw new Error(`source ${formatSource(source)} is no path of the node`)
  return path
}

export function findRemoteSourceFaults(
  { source, subPath, fsType }: VolumeKindRequest,
  form: 'export' | 'share',
): Fault[] {
  const faults: Fault[] = []
  if (subPath !== undefined) {
    faults.push(createSubPathFault(subPath, `of ${fsType} the source names the directory, add it there`))
  }
  if (source.type === form) return faults
  const what = source.type === 'none' ? 'is missing' : `is ${quoteValue(formatSource(source))}`
  return [
    ...faults,
    createSourceFault(what, `write it like ${REMOTE_SOURCE_EXAMPLES[form]}, without "..", "." or a comma`),
  ]
}

/** A directory, or names in it, that no pod may see or write by any path or mount. */
export interface ProtectedPlace {
  /** A directory; if it does not exist, nothing needs protection. */
  directory: string
  /** Names in the directory, which need not exist yet; undefined: the directory itself. */
  names?: readonly string[]
  /** Whether its content is protected too, also in other file systems that are mounted there. */
  isTree: boolean
}

export function listProtectedRecordPlaces({ stateDir }: { stateDir: string }): ProtectedPlace {
  return { directory: stateDir, names: Object.values(PRIVATE_STATE_DIRECTORIES), isTree: true }
}

/** Lists the log and the configuration. Write access to their directories permits their replacement. */
export function listProtectedFilePlaces({
  logFile,
  configFile,
}: LoadedConfig): { what: string; file: string; place: ProtectedPlace }[] {
  const files = { log: logFile, configuration: configFile }
  return Object.entries(files).flatMap(([what, file]) =>
    file === undefined
      ? []
      : [{ what, file, place: { directory: dirname(file), names: [basename(file)], isTree: false } }],
  )
}

/**
 * Whether a source is a protected place, contains it, or lies in it. Locations are compared: the file system and the path
 * below its root. Within one mount the paths suffice, so the mount table is read only for two mounts.
 * @param isOfKubelet kubelet mounted the source in the pod's directory, so its path leads through no other place
 */
export function leadsToProtectedPlace(
  host: Host,
  table: MountTableSnapshot,
  source: Handle,
  place: ProtectedPlace,
  isOfKubelet = false,
): boolean {
  const { inodes } = host
  const directory = tolerateSystemErrors(() => inodes.openTrusted(place.directory))
  if (directory === undefined) return false
  using _ = deferHandleClose(inodes, directory)
  const [here, there] = [inodes.statMountPoint(source), inodes.statMountPoint(directory)]
  if (here.mountId === there.mountId) {
    const inMount = (handle: Handle) => ({ device: '', path: toPathPrefix(inodes.pathOf(handle)) })
    return isPathNestedInPlace(place, [inMount(source)], inMount(directory))
  }
  // Subvolumes of btrfs have devices of their own.
  const isOtherDisk = here.device !== there.device && (isDiskDevice(here.device) || isDiskDevice(there.device))
  if (isOfKubelet && isOtherDisk) return false
  const chain = findLocationChain(host, table, source)
  const [location] = findLocationChain(host, table, directory)
  return location !== undefined && isPathNestedInPlace(place, isOfKubelet ? chain.slice(0, 1) : chain, location)
}

function isPathNestedInPlace(
  { names, isTree }: ProtectedPlace,
  chain: readonly TreeLocation[],
  directory: TreeLocation,
): boolean {
  const places = names?.map((name) => ({ ...directory, path: `${directory.path}/${name}` })) ?? [directory]
  const [own] = chain
  return places.some(
    (place) =>
      (own !== undefined && isLocationWithin(place, own)) ||
      (isTree && chain.some((location) => isLocationWithin(location, place))),
  )
}
