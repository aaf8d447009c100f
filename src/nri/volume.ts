import { WRITTEN_PLUGINS } from '../mount-table/kubelet-sub-path.ts'
import { CSI_DRIVER, CSI_PLUGIN, volumeOfSubPath } from '../mount-table/kubelet-volume.ts'
import { HOST_PATH } from '../request/map-rule.ts'
import type { Mount } from './messages.ts'

/** What kubelet has of a pod's volumes, by its name for each: of a claim that is the PersistentVolume's. */
export interface PodVolumes {
  /** The directory of its plugin: `kubernetes.io~csi`. */
  readonly plugins: ReadonlyMap<string, string>
  /** Of CSI volumes, their drivers. */
  readonly drivers: ReadonlyMap<string, string>
}

/** A volume as a container mounts it. */
export interface MountedVolume {
  readonly mount: Mount
  /** As in rules: `emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, or kubelet's plugin: `kubernetes.io/nfs`. */
  readonly kind: string
  /** Kubelet's name for it. Of a hostPath, of which a mount tells no name, its path. */
  readonly name: string
  /** Kubelet writes its files: a ConfigMap, a Secret, a projected volume, the downward API. */
  readonly isKubelets: boolean
  /** It is modekeep's. */
  readonly isOwn: boolean
}

const KINDS: Readonly<Record<string, string>> = {
  'kubernetes.io~empty-dir': 'emptyDir',
  [CSI_PLUGIN]: 'csi',
  'kubernetes.io~local-volume': 'local',
}

const OWN_PLUGIN = 'modekeep~fs'

// kubernetes pkg/kubelet/kubelet_getters.go; pkg/volume/csi mounts one level deeper.
const VOLUME = /^\/volumes\/([^/]+~[^/]+)\/([^/]+)(\/mount)?$/

/** The directory of a pod, which has its volumes. */
export function podDirectory(kubeletDir: string, uid: string): string {
  return `${kubeletDir}/pods/${uid}`
}

function kindOf(plugin: string): string {
  return KINDS[plugin] ?? (plugin.startsWith('kubernetes.io~') ? plugin.replace('~', '/') : 'flexVolume')
}

/** Whether a volume is modekeep's; a CSI driver of modekeep's by another name than the usual is not known. */
export function isOwn(plugin: string, name: string, { drivers }: PodVolumes): boolean {
  return plugin === OWN_PLUGIN || (plugin === CSI_PLUGIN && drivers.get(name) === CSI_DRIVER)
}

/**
 * Which volume a mount shows. Undefined: none of the pod's, such as /etc/hosts and what a runtime or a device plugin adds
 * in the pod's directory. Whatever else is of the node is taken for a hostPath.
 */
export function volumeOf(mount: Mount, podDir: string, volumes: PodVolumes): MountedVolume | undefined {
  const { source, type } = mount
  if ((type !== 'bind' && type !== '') || !isNormal(source)) return undefined
  if (!source.startsWith(`${podDir}/`)) {
    return { mount, kind: HOST_PATH, name: source, isKubelets: false, isOwn: false }
  }
  const rest = source.slice(podDir.length)
  const [, mountedPlugin, whole] = VOLUME.exec(rest) ?? []
  const name = whole ?? volumeOfSubPath(rest)
  if (name === undefined) return undefined
  const plugin = mountedPlugin ?? volumes.plugins.get(name)
  if (plugin === undefined) return { mount, kind: 'unknown', name, isKubelets: false, isOwn: false }
  return {
    mount,
    kind: kindOf(plugin),
    name,
    isKubelets: WRITTEN_PLUGINS.includes(plugin),
    isOwn: isOwn(plugin, name, volumes),
  }
}

const isNormal = (path: string) => /^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path)
