import { basename, dirname } from 'node:path'
import { unlessRefused } from '../../host/file-error.ts'
import { closing, type Handle, type Host, hasDisk } from '../../host/host.ts'
import { isWithin, locationChain } from '../../mount-table/location-chain.ts'
import type { TableSnapshot } from '../../mount-table/table-snapshot.ts'
import { type TreeLocation, toPathPrefix } from '../../mount-table/tree-location.ts'
import { type LoadedConfig, PRIVATE } from '../../request/defaults.ts'

/** What no pod may see or write, by whatever path and mount. */
export interface ProtectedPlace {
  /** An existing directory; where it does not exist there is nothing to protect. */
  directory: string
  /** Names in it, which need not exist yet; undefined: the directory itself. */
  names?: readonly string[]
  /** Whether what lies in it is protected too, also in other file systems that are mounted there. */
  isTree: boolean
}

export function listRecordPlaces({ stateDir }: { stateDir: string }): ProtectedPlace {
  return { directory: stateDir, names: Object.values(PRIVATE), isTree: true }
}

/** The log and the configuration: who can write to the directory of one can replace it. */
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
 * Whether a source is a protected place, holds it, or lies in it. Locations are compared: the file system and the path below its
 * root. The mount table is read only where the two are not in one mount, for which their paths tell.
 * @param isOfKubelet kubelet has mounted the source in the pod's directory, so its path leads through no other place
 */
export function leadsToPlace(
  host: Host,
  table: TableSnapshot,
  source: Handle,
  place: ProtectedPlace,
  isOfKubelet = false,
): boolean {
  const { inodes } = host
  const directory = unlessRefused(() => inodes.openTrusted(place.directory))
  if (directory === undefined) return false
  using _ = closing(inodes, directory)
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
