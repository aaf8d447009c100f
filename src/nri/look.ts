import { realpathSync } from 'node:fs'
import { nodeFs, readBounded } from '../host/read-file.ts'
import { listNames } from '../host/write-file.ts'
import { CSI_NOTE, CSI_PLUGIN, driverIn } from '../mount-table/kubelet-volume.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { type PodVolumes, podDirectory } from './volume.ts'

/** What kubelet writes of a CSI volume has a few hundred bytes. */
const MOST_BYTES = 65_536

/**
 * Reads kubelet's directory of a pod, on the node's disk, never a volume. Blocks its thread meanwhile.
 * @throws {Refusal} where kubelet has no such directory
 */
export function lookAtPod(kubeletDir: string, uid: string): PodVolumes {
  const podDir = podDirectory(kubeletDir, uid)
  const plugins = new Map<string, string>()
  const drivers = new Map<string, string>()
  const twice = new Set<string>()
  const { directory, names } = pluginsOf(podDir)
  for (const plugin of names) {
    for (const name of listNames(nodeFs, `${podDir}/volumes/${plugin}`)) {
      if (plugins.has(name)) twice.add(name)
      plugins.set(name, plugin)
      const driver = plugin === CSI_PLUGIN ? driverOf(`${podDir}/volumes/${plugin}/${name}`) : undefined
      if (driver !== undefined) drivers.set(name, driver)
    }
  }
  // A claim's PersistentVolume may be named as another volume of the pod: which one a subPath is of is not known then.
  for (const name of twice) plugins.delete(name)
  return { directory, plugins, drivers }
}

function pluginsOf(podDir: string): { directory: string; names: string[] } {
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

/** Kubelet writes it down (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json). */
function driverOf(directory: string): string | undefined {
  try {
    return driverIn(readBounded(nodeFs, `${directory}/${CSI_NOTE}`, MOST_BYTES).text)
  } catch {
    return undefined
  }
}
