import { basename, dirname } from 'node:path'
import { deferClose, type Handle, type Host, hasDisk } from '../../host/host.ts'
import { tolerateSystemErrors } from '../../host/system-error.ts'
import type { TableSnapshot } from '../../mount-table/mountinfo.ts'
import { isWithin, locationChain, type TreeLocation, toPathPrefix } from '../../mount-table/tree-location.ts'
import { type LoadedConfig, PRIVATE } from '../../request/defaults.ts'

/** A directory, or names in it, that no pod may see or write by any path or mount. */
export interface ProtectedPlace {
  /** A directory; if it does not exist, nothing needs protection. */
  directory: string
  /** Names in it, which need not exist yet; undefined: the directory itself. */
  names?: readonly string[]
  /** Whether its content is protected too, also in other file systems that are mounted there. */
  isTree: boolean
}

export function listRecordPlaces({ stateDir }: { stateDir: string }): ProtectedPlace {
  return { directory: stateDir, names: Object.values(PRIVATE), isTree: true }
}

/** Lists the log and the configuration. Write access to their directories permits their replacement. */
export function listFilePlaces({
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
export function leadsToPlace(
  host: Host,
  table: TableSnapshot,
  source: Handle,
  place: ProtectedPlace,
  isOfKubelet = false,
): boolean {
  const { inodes } = host
  const directory = tolerateSystemErrors(() => inodes.openTrusted(place.directory))
  if (directory === undefined) return false
  using _ = deferClose(inodes, directory)
  const [here, there] = [inodes.statMountPoint(source), inodes.statMountPoint(directory)]
  if (here.mountId === there.mountId) {
    const inMount = (handle: Handle) => ({ device: '', path: toPathPrefix(inodes.pathOf(handle)) })
    return isNestedIn(place, [inMount(source)], inMount(directory))
  }
  // Subvolumes of btrfs have devices of their own.
  const isOtherDisk = here.device !== there.device && (hasDisk(here.device) || hasDisk(there.device))
  if (isOfKubelet && isOtherDisk) return false
  const chain = locationChain(host, table, source)
  const [location] = locationChain(host, table, directory)
  return location !== undefined && isNestedIn(place, isOfKubelet ? chain.slice(0, 1) : chain, location)
}

function isNestedIn(
  { names, isTree }: ProtectedPlace,
  chain: readonly TreeLocation[],
  directory: TreeLocation,
): boolean {
  const places = names?.map((name) => ({ ...directory, path: `${directory.path}/${name}` })) ?? [directory]
  const [own] = chain
  return places.some(
    (place) =>
      (own !== undefined && isWithin(place, own)) || (isTree && chain.some((location) => isWithin(location, place))),
  )
}
