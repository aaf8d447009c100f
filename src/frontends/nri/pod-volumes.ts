import { realpathSync } from 'node:fs'
import { HOST_PATH_KIND } from '../../config/map-rule.ts'
import { isNormalizedPath } from '../../config/rule.ts'
import { createFault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import {
  ATOMIC_WRITER_PLUGINS,
  CSI_DRIVER_NAME,
  CSI_PLUGIN_DIRECTORY,
  CSI_VOLUME_DATA_FILE,
  parseCsiDriverName,
  parseSubPathVolume,
} from '../../kernel/mount-table/kubelet-volume.ts'
import { nodeFs, readBoundedFile } from '../../kernel/read-file.ts'
import { listDirectoryNames } from '../../kernel/write-file.ts'
import type { ContainerMount } from './protocol.ts'

/** A pod's volumes in kubelet's directory, keyed by kubelet's name. A claim's volume has its PersistentVolume's name. */
export interface PodVolumes {
  /** Real path of the pod's directory, because runtimes resolve symbolic links in the sources that they send. */
  readonly directory: string
  /** Directory name of each volume's plugin, such as `kubernetes.io~csi`. */
  readonly plugins: ReadonlyMap<string, string>
  /** Driver names of the CSI volumes. */
  readonly drivers: ReadonlyMap<string, string>
}

/** A volume at a container's mount. */
export interface MountedVolume {
  /** Its source is rewritten below the configured kubelet directory, if the runtime sent the real path of that directory. */
  readonly mount: ContainerMount
  /** A kind of `map` rules: `emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, or kubelet's plugin: `kubernetes.io/nfs`. */
  readonly kind: string
  /** Kubelet's name of the volume, or the path of a hostPath, whose mount does not contain its name. */
  readonly name: string
  /** Kubelet writes its files: a ConfigMap, a Secret, a projected volume or the downward API. */
  readonly isKubelets: boolean
  /** Whether it is modekeep's own volume; undefined: unknown. */
  readonly isOwn: boolean | undefined
  /** True if its directory has the pod's uid, but is not in the configured kubelet directory. */
  readonly isElsewhere: boolean
}

const VOLUME_KINDS_BY_PLUGIN: Readonly<Record<string, string>> = {
  'kubernetes.io~empty-dir': 'emptyDir',
  [CSI_PLUGIN_DIRECTORY]: 'csi',
  'kubernetes.io~local-volume': 'local',
}

/** The node's root directory, which a hostPath may name. */
export const NODE_ROOT_DIRECTORY = '/'

const MODEKEEP_PLUGIN_DIRECTORY = 'modekeep~fs'

// kubernetes pkg/kubelet/kubelet_getters.go; pkg/volume/csi mounts one level deeper.
const POD_VOLUME_PATH_PATTERN = /^\/volumes\/([^/]+~[^/]+)\/([^/]+)(\/mount)?$/

/** Resolves kubelet's directory of a pod. @throws {Refusal} for an invalid uid, which could lead out of the directory */
export function resolvePodDirectory(kubeletDir: string, uid: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(uid)) return `${kubeletDir}/pods/${uid}`
  throw Refusal.of(
    'map-kubelet-dir',
    `the runtime reports the pod's uid as ${quoteValue(uid)}, which is not the form of a pod's uid`,
    `report this`,
  )
}

function parseVolumeKind(plugin: string): string {
  return (
    VOLUME_KINDS_BY_PLUGIN[plugin] ?? (plugin.startsWith('kubernetes.io~') ? plugin.replace('~', '/') : 'flexVolume')
  )
}

/**
 * Returns whether a volume is modekeep's own; undefined for a CSI volume whose driver is not in kubelet's note. A CSI driver
 * of modekeep's under another name than the default is not recognized.
 */
export function isModekeepVolume(plugin: string, name: string, { drivers }: PodVolumes): boolean | undefined {
  if (plugin !== CSI_PLUGIN_DIRECTORY) return plugin === MODEKEEP_PLUGIN_DIRECTORY
  const driver = drivers.get(name)
  return driver === undefined ? undefined : driver === CSI_DRIVER_NAME
}

/**
 * Finds the volume of a mount. Returns undefined for mounts in the pod's directory that are no volumes, such as /etc/hosts
 * and mounts that a runtime or a device plugin adds. Any other source on the node counts as a hostPath.
 */
export function findMountedVolume(
  mount: ContainerMount,
  podDir: string,
  volumes: PodVolumes,
): MountedVolume | undefined {
  const { source, type } = mount
  if ((type !== 'bind' && type !== '') || !(source === NODE_ROOT_DIRECTORY || isNormalizedPath(source)))
    return undefined
  const parent = [podDir, volumes.directory].find((directory) => source.startsWith(`${directory}/`))
  if (parent === undefined) return describeForeignMount(mount, podDir, volumes)
  const pathInPod = source.slice(parent.length)
  const volume = parseVolumePath(pathInPod, volumes)
  return volume && { ...volume, mount: { ...mount, source: `${podDir}${pathInPod}` }, isElsewhere: false }
}

/** Describes a mount outside the pod's directory. Its kind is hostPath, which needs a rule, even if the path has the pod's uid. */
function describeForeignMount(mount: ContainerMount, podDir: string, volumes: PodVolumes): MountedVolume {
  const { source } = mount
  const pod = podDir.slice(podDir.lastIndexOf('/pods/'))
  const at = source.indexOf(`${pod}/volume`)
  const volume = at < 0 ? undefined : parseVolumePath(source.slice(at + pod.length), volumes)
  const { name = source, isKubelets = false, isOwn = false } = volume ?? {}
  return { mount, kind: HOST_PATH_KIND, name, isKubelets, isOwn, isElsewhere: at >= 0 }
}

/** @param pathInPod the part of a source below the pod's directory, with its leading slash */
function parseVolumePath(
  pathInPod: string,
  volumes: PodVolumes,
): Omit<MountedVolume, 'mount' | 'isElsewhere'> | undefined {
  const [, mountedPlugin, mountedName] = POD_VOLUME_PATH_PATTERN.exec(pathInPod) ?? []
  const name = mountedName ?? parseSubPathVolume(pathInPod)
  if (name === undefined) return undefined
  const plugin = mountedPlugin ?? volumes.plugins.get(name)
  if (plugin === undefined) return { kind: 'unknown', name, isKubelets: false, isOwn: undefined }
  return {
    kind: parseVolumeKind(plugin),
    name,
    isKubelets: ATOMIC_WRITER_PLUGINS.includes(plugin),
    isOwn: isModekeepVolume(plugin, name, volumes),
  }
}

/** Returns whether the path may be one of modekeep's own volumes. Only kubelet's note of the volume names its driver. */
export const mayBeModekeepVolume = ({ source }: { source: string }) =>
  /\/volumes\/(modekeep~fs|kubernetes\.io~csi)\/|\/volume-subpaths\//.test(source)

/** Returns whether the path alone shows that a mount is modekeep's own FlexVolume. */
export function isModekeepFlexVolume({ source }: ContainerMount): boolean {
  return source.includes(`/volumes/${MODEKEEP_PLUGIN_DIRECTORY}/`)
}

/** Kubelet's note of a CSI volume has a few hundred bytes. */
const MAX_CSI_VOLUME_DATA_BYTES = 65_536

/**
 * Reads kubelet's directory of a pod, on the node's disk, and never a volume. Blocks the calling thread.
 * @throws {Refusal} if kubelet has no such directory
 */
export function readPodVolumes(kubeletDir: string, uid: string): PodVolumes {
  const podDir = resolvePodDirectory(kubeletDir, uid)
  const plugins = new Map<string, string>()
  const drivers = new Map<string, string>()
  const duplicates = new Set<string>()
  const { directory, names } = listVolumePlugins(podDir)
  for (const plugin of names) {
    for (const name of listDirectoryNames(nodeFs, `${podDir}/volumes/${plugin}`)) {
      if (plugins.has(name)) duplicates.add(name)
      plugins.set(name, plugin)
      const driver =
        plugin === CSI_PLUGIN_DIRECTORY ? readCsiDriverName(`${podDir}/volumes/${plugin}/${name}`) : undefined
      if (driver !== undefined) drivers.set(name, driver)
    }
  }
  // A PersistentVolume may have the name of another volume of the pod: the volume of a subPath is ambiguous then.
  for (const name of duplicates) plugins.delete(name)
  return { directory, plugins, drivers }
}

function listVolumePlugins(podDir: string): { directory: string; names: string[] } {
  try {
    return { directory: realpathSync(podDir), names: listDirectoryNames(nodeFs, `${podDir}/volumes`) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Refusal(
      createFault(
        'map-kubelet-dir',
        `kubelet has no directory ${quoteValue(podDir)} here`,
        `give its --root-dir as --kubelet-dir to "modekeep nri"`,
      ),
      { cause: error },
    )
  }
}

/** Reads the driver's name from the note that kubelet writes (kubernetes pkg/volume/csi/csi_attacher.go, vol_data.json). */
function readCsiDriverName(directory: string): string | undefined {
  try {
    return parseCsiDriverName(
      readBoundedFile(nodeFs, `${directory}/${CSI_VOLUME_DATA_FILE}`, MAX_CSI_VOLUME_DATA_BYTES).text,
    )
  } catch {
    return undefined
  }
}
