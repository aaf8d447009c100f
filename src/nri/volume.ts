import { WRITTEN_PLUGINS } from '../mount-table/kubelet-sub-path.ts'
import { CSI_DRIVER, CSI_PLUGIN, volumeOfSubPath } from '../mount-table/kubelet-volume.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { HOST_PATH } from '../request/map-rule.ts'
import type { Mount } from './messages.ts'

/** What kubelet has of a pod's volumes, by its name for each: of a claim that is the PersistentVolume's. */
export interface PodVolumes {
  /** The real path of the pod's directory: runtimes follow the links in a source before they tell it. */
  readonly directory: string
  /** The directory of its plugin: `kubernetes.io~csi`. */
  readonly plugins: ReadonlyMap<string, string>
  /** Of CSI volumes, their drivers. */
  readonly drivers: ReadonlyMap<string, string>
}

/** A volume as a container mounts it. */
export interface MountedVolume {
  /** With its source below the directory of kubelet's that the plugin was given, where it has another name too. */
  readonly mount: Mount
  /** As in rules: `emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, or kubelet's plugin: `kubernetes.io/nfs`. */
  readonly kind: string
  /** Kubelet's name for it. Of a hostPath, of which a mount tells no name, its path. */
  readonly name: string
  /** Kubelet writes its files: a ConfigMap, a Secret, a projected volume, the downward API. */
  readonly isKubelets: boolean
  /** It is modekeep's; undefined: that cannot be told. */
  readonly isOwn: boolean | undefined
  /** It is the pod's, by its uid, in another directory of kubelet's than the one that the plugin was given. */
  readonly isElsewhere: boolean
}

const KINDS: Readonly<Record<string, string>> = {
  'kubernetes.io~empty-dir': 'emptyDir',
  [CSI_PLUGIN]: 'csi',
  'kubernetes.io~local-volume': 'local',
}

/** The node's root directory: a hostPath may name it. */
export const ROOT_DIRECTORY = '/'

const OWN_PLUGIN = 'modekeep~fs'

// kubernetes pkg/kubelet/kubelet_getters.go; pkg/volume/csi mounts one level deeper.
const VOLUME = /^\/volumes\/([^/]+~[^/]+)\/([^/]+)(\/mount)?$/

/** The directory of a pod, which has its volumes. @throws {Refusal} for a uid that is none: it becomes part of a path */
export function podDirectory(kubeletDir: string, uid: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(uid)) return `${kubeletDir}/pods/${uid}`
  throw new Refusal(`the runtime tells the pod's uid as ${quoted(uid)}, which is no uid of kubelet's: report this`)
}

function kindOf(plugin: string): string {
  return KINDS[plugin] ?? (plugin.startsWith('kubernetes.io~') ? plugin.replace('~', '/') : 'flexVolume')
}

/**
 * Whether a volume is modekeep's. Undefined: a CSI volume whose driver kubelet's note does not tell. A driver of modekeep's by
 * another name than the usual is not known.
 */
export function isOwn(plugin: string, name: string, { drivers }: PodVolumes): boolean | undefined {
  if (plugin !== CSI_PLUGIN) return plugin === OWN_PLUGIN
  const driver = drivers.get(name)
  return driver === undefined ? undefined : driver === CSI_DRIVER
}

/**
 * Which volume a mount shows. Undefined: none of the pod's, such as /etc/hosts and what a runtime or a device plugin adds
 * in the pod's directory. Whatever else is of the node is taken for a hostPath.
 */
export function volumeOf(mount: Mount, podDir: string, volumes: PodVolumes): MountedVolume | undefined {
  const { source, type } = mount
  if ((type !== 'bind' && type !== '') || !isNormal(source)) return undefined
  const above = [podDir, volumes.directory].find((directory) => source.startsWith(`${directory}/`))
  if (above === undefined) return otherDirectory(mount, podDir, volumes)
  const rest = source.slice(above.length)
  const volume = volumeIn(rest, volumes)
  return volume && { ...volume, mount: { ...mount, source: `${podDir}${rest}` }, isElsewhere: false }
}

/** Whose directory it is may only be told by the uid in it: its kind stays what needs a rule. */
function otherDirectory(mount: Mount, podDir: string, volumes: PodVolumes): MountedVolume {
  const { source } = mount
  const pod = podDir.slice(podDir.lastIndexOf('/pods/'))
  const at = source.indexOf(`${pod}/volume`)
  const volume = at < 0 ? undefined : volumeIn(source.slice(at + pod.length), volumes)
  const { name = source, isKubelets = false, isOwn = false } = volume ?? {}
  return { mount, kind: HOST_PATH, name, isKubelets, isOwn, isElsewhere: at >= 0 }
}

/** @param rest the part of a source below the pod's directory, with its slash */
function volumeIn(rest: string, volumes: PodVolumes): Omit<MountedVolume, 'mount' | 'isElsewhere'> | undefined {
  const [, mountedPlugin, whole] = VOLUME.exec(rest) ?? []
  const name = whole ?? volumeOfSubPath(rest)
  if (name === undefined) return undefined
  const plugin = mountedPlugin ?? volumes.plugins.get(name)
  if (plugin === undefined) return { kind: 'unknown', name, isKubelets: false, isOwn: undefined }
  return {
    kind: kindOf(plugin),
    name,
    isKubelets: WRITTEN_PLUGINS.includes(plugin),
    isOwn: isOwn(plugin, name, volumes),
  }
}

/** Whether a mount may only be a volume of modekeep's, whatever kubelet's directory says. */
export function isOwnFlexVolume({ source }: Mount): boolean {
  return source.includes(`/volumes/${OWN_PLUGIN}/`)
}

const isNormal = (path: string) =>
  path === ROOT_DIRECTORY || (/^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path))
