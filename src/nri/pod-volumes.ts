import { realpathSync } from 'node:fs'
import { quoted, Refusal } from '../errors/refusal.ts'
import { nodeFs, readBounded } from '../host/read-file.ts'
import { listNames } from '../host/write-file.ts'
import { CSI_PLUGIN, CSI_VOLUME_DATA, parseDriverName } from '../mount-table/kubelet-volume.ts'
import { type PodVolumes, resolvePodDirectory } from './mounted-volume.ts'

/** Kubelet's note of a CSI volume has a few hundred bytes. */
const MAX_NOTE_BYTES = 65_536

/**
 * Reads kubelet's directory of a pod, on the node's disk, and never a volume. Blocks the calling thread.
 * @throws {Refusal} if kubelet has no such directory
 */
export function readPodVolumes(kubeletDir: string, uid: string): PodVolumes {
  const podDir = resolvePodDirectory(kubeletDir, uid)
  const plugins = new Map<string, string>()
  const drivers = new Map<string, string>()
  const duplicates = new Set<string>()
  const { directory, names } = listPlugins(podDir)
  for (const plugin of names) {
    for (const name of listNames(nodeFs, `${podDir}/volumes/${plugin}`)) {
      if (plugins.has(name)) duplicates.add(name)
      plugins.set(name, plugin)
      const driver = plugin === CSI_PLUGIN ? readCsiDriver(`${podDir}/volumes/${plugin}/${name}`) : undefined
      if (driver !== undefined) drivers.set(name, driver)
    }
  }
  // A PersistentVolume may have the name of another volume of the pod: the volume of a subPath is ambiguous then.
  for (const name of duplicates) plugins.delete(name)
  return { directory, plugins, drivers }
}

function listPlugins(podDir: string): { directory: string; names: string[] } {
  try {
    return { directory: realpathSync(podDir), names: listNames(nodeFs, `${podDir}/volumes`) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Refusal(
      `kubelet has no directory ${quoted(podDir)} here: give its --root-dir as --kubelet-dir to "modekeep nri"`,
      { cause: error },
    )
  }
}

/** Reads the driver's name from the note that kubelet writes (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json). */
function readCsiDriver(directory: string): string | undefined {
  try {
    return parseDriverName(readBounded(nodeFs, `${directory}/${CSI_VOLUME_DATA}`, MAX_NOTE_BYTES).text)
  } catch {
    return undefined
  }
}
