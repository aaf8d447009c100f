import { dirname, normalize } from 'node:path'
import type { NodeFiles } from '../../kernel/administration.ts'
import type { InstallCommand } from '../commands/install.ts'
import { DEFAULT_PLUGIN_DIR, findKubelets, type RunningKubelet } from '../node-state/kubelets.ts'
import { createInstallRefusal, type InstallerRun } from './site.ts'

/** The plugin directory to configure in kubelet on a node whose /usr is read-only. */
export const WRITABLE_PLUGIN_DIR = '/var/lib/kubelet/volumeplugins'

const KNOWN_PLUGIN_DIRECTORIES = [
  WRITABLE_PLUGIN_DIR,
  '/etc/kubernetes/kubelet-plugins/volume/exec',
  '/etc/kubernetes/volumeplugins',
  '/home/kubernetes/flexvolume',
  '/var/lib/kubelet/volume-plugins',
  '/opt/rke/var/lib/kubelet/volumeplugins',
  DEFAULT_PLUGIN_DIR,
]
const PLUGIN_DIR_OPTION = '--plugin-dir DIR'

/**
 * Chooses kubelet's volume plugin directory, by its path on the node: the named one, the running kubelet's, or the only
 * known one that exists.
 * @param root '' for the running system
 * @throws {Refusal} with the option to name it, if the choice is not certain
 */
export function choosePluginDirectory(job: InstallerRun, root: string): { directory: string; reason: string } {
  const { admin, command } = job
  // Processes of the running system say nothing about the system below --root.
  const proc = command.proc ?? (root === '' ? '/proc' : undefined)
  if (command.pluginDir !== undefined) {
    const directory = command.pluginDir.replace(/\/$/, '')
    // An uninstall removes the driver from the named directory, even if kubelet uses another one by now.
    const isChecked = proc !== undefined && command.verb === 'install'
    const reason = isChecked
      ? checkNamedPluginDirectory({ ...job, command }, directory, proc, root)
      : 'named by --plugin-dir'
    return { directory, reason }
  }
  const found = proc === undefined ? [] : findKubelets(admin.files, proc, root)
  if (proc === undefined || found.length === 0) return chooseKnownPluginDirectory(admin.files, root)
  const chosen = chooseKubeletPluginDirectory(found)
  warnAboutContainerKubelets(job, found, `${proc}`, root)
  return chosen
}

const formatKubelet = ({ kind, pid, why }: RunningKubelet) => `${kind}, pid ${pid}, ${why}`

function chooseKubeletPluginDirectory(found: readonly RunningKubelet[]) {
  const untold = found.filter(({ directory }) => directory === undefined)
  if (untold.length > 0) {
    throw createInstallRefusal([
      'a running kubelet cannot be asked for its volume plugin directory',
      ...untold.map(({ kind, pid, why }) => `${kind}, pid ${pid}: ${why}`),
      `run this as root, or name the directory with ${PLUGIN_DIR_OPTION}`,
    ])
  }
  const [first, ...others] = new Set(found.map(({ directory }) => directory))
  const list = found.map((kubelet) => `${kubelet.directory}  (${formatKubelet(kubelet)})`)
  if (others.length > 0) {
    const fault = 'the kubelets here use different volume plugin directories:'
    throw createInstallRefusal([fault, ...list, `run this once for each, with ${PLUGIN_DIR_OPTION}`])
  }
  if (!first?.startsWith('/')) {
    const fault = `the kubelet's volume plugin directory is not an absolute path: ${list[0]}`
    throw createInstallRefusal([fault, `name it with ${PLUGIN_DIR_OPTION}`])
  }
  return { directory: first, reason: formatKubelet(found[0] as RunningKubelet) }
}

function chooseKnownPluginDirectory(files: NodeFiles, root: string) {
  const there = KNOWN_PLUGIN_DIRECTORIES.filter((directory) => files.stat(root + directory))
  // A directory that already contains the driver is preferred.
  const used = there.filter((directory) => files.stat(`${root}${directory}/modekeep~fs/fs`))
  const [directory, ...others] = used.length > 0 ? used : there
  if (directory === undefined) {
    throw createInstallRefusal([
      'no kubelet was found, and none of the known volume plugin directories exists',
      `name the directory with ${PLUGIN_DIR_OPTION} (the kubelet's default is ${DEFAULT_PLUGIN_DIR})`,
    ])
  }
  if (others.length > 0) {
    const fault = 'no kubelet was found, and several volume plugin directories exist:'
    throw createInstallRefusal([fault, directory, ...others, `name the right one with ${PLUGIN_DIR_OPTION}`])
  }
  const why = used.length > 0 ? 'the driver is there already' : 'the only known directory that exists'
  return { directory, reason: `no kubelet was found; ${why}` }
}

/** Warns of kubelets in containers, which search for the driver inside the container. */
function warnAboutContainerKubelets(
  { admin: { files }, warn }: InstallerRun,
  found: readonly RunningKubelet[],
  proc: string,
  root: string,
) {
  const isSame = (one: string, other: string) => {
    const [a, b] = [files.stat(one), files.stat(other)]
    return a !== undefined && a.dev === b?.dev && a.ino === b.ino
  }
  for (const { pid, directory } of found) {
    const its = `${proc}/${pid}/root`
    if (!files.stat(`${its}/`) || isSame(`${its}/`, `${root}/`) || isSame(its + directory, root + directory)) continue
    warn(`the kubelet (pid ${pid}) runs in a container that does not show this host's ${directory}: mount it there`)
  }
}

/** The overlays of driver/kubernetes by plugin directory. */
export const OVERLAYS_BY_PLUGIN_DIR: Readonly<Record<string, string>> = {
  '/usr/libexec/kubernetes/kubelet-plugins/volume/exec': 'default or k3s',
  '/etc/kubernetes/kubelet-plugins/volume/exec': 'openshift',
  '/home/kubernetes/flexvolume': 'gke',
  '/etc/kubernetes/volumeplugins': 'aks',
  '/var/lib/kubelet/volumeplugins': 'flatcar or rke2',
}

/**
 * Compares the named directory with those of visible kubelets. It is refused only if it is certainly wrong: the directory
 * of each kubelet of this system was read, and none is the named one.
 * @param root '' for the running system
 * @returns the reason for the directory, to be reported
 * @throws {Refusal} with the directory to name, and the overlay that uses it
 */
export function checkNamedPluginDirectory(
  job: InstallerRun<InstallCommand>,
  named: string,
  proc: string,
  root: string,
): string {
  const { admin, command, warn } = job
  const { files } = admin
  // A container has the node's files, but cannot see kubelet's executable.
  const view = root || (command.nodeRoot ?? '')
  const found = findKubelets(files, proc, view, 'an unseen executable is believed')
  if (found.length === 0) return 'named by --plugin-dir; no kubelet is seen, so nobody says whether it looks there'
  const wanted = identifyDirectory(files, [root], named)
  const usesNamedDirectory = ({ pid, directory }: RunningKubelet) =>
    directory !== undefined &&
    (normalize(directory) === normalize(named) ||
      identifyDirectory(files, [`${proc}/${pid}/root`, view], directory).some((place) => wanted.includes(place)))
  const agreeing = found.find(usesNamedDirectory)
  if (agreeing) return `named by --plugin-dir, as it is the directory of ${agreeing.kind}, pid ${agreeing.pid}`
  const here = found.filter(({ pid }) => isProcessInNodeMounts(files, proc, pid))
  const certain = here.filter(isPluginDirectoryCertain)
  const [first] = certain
  if (first === undefined || certain.length < here.length) {
    const uncertain = found.find((kubelet) => !certain.includes(kubelet)) as RunningKubelet
    const why = here.includes(uncertain) ? uncertain.why : 'it has mounts of its own'
    return `named by --plugin-dir; whether ${uncertain.kind}, pid ${uncertain.pid}, looks there is not known: ${why}`
  }
  const other = first.directory ?? ''
  const fault = `${first.kind} (pid ${first.pid}) looks for drivers in ${other}, not in ${named} (${first.why})`
  if (command.isForAnyKubelet) {
    warn(fault)
    return 'named by --plugin-dir, for any kubelet'
  }
  const overlay = OVERLAYS_BY_PLUGIN_DIR[other]
  throw createInstallRefusal([
    fault,
    `on this node: --plugin-dir ${other}`,
    overlay === undefined
      ? `on a cluster: a copy of an overlay, in which ${other} replaces the plugin directory`
      : `on a cluster: the overlay ${overlay}`,
    `if kubelet is to look in ${named} soon: --any-kubelet`,
  ])
}

/** True if the directory was read. k3s hides its arguments and its unit may be anywhere, so its default is only assumed. */
const isPluginDirectoryCertain = ({ kind, directory, isDefault }: RunningKubelet) =>
  directory?.startsWith('/') && (kind === 'kubelet' || !isDefault)

/** Identifies a directory that may not exist yet, by the inode of its nearest existing parent and the rest of the path. */
function identifyDirectory(files: NodeFiles, roots: readonly string[], directory: string): string[] {
  return roots.flatMap((root) => {
    let above = normalize(directory).replace(/(?<=.)\/$/, '')
    const path = above
    for (;;) {
      const stat = files.stat(`${root}${above}`)
      if (stat) return [`${stat.dev}:${stat.ino}:${path.slice(above.length).replace(/^\//, '')}`]
      if (above === dirname(above)) return []
      above = dirname(above)
    }
  })
}

/**
 * True if a process sees the node's mounts. A process in a container may have the directory under another name. Compares
 * mount ids, which are unique in the system, from mountinfo, which any user may read.
 */
function isProcessInNodeMounts(files: NodeFiles, proc: string, pid: string): boolean {
  const readFirstMountId = (process: string) =>
    /^\d+ /.exec(files.head(`${proc}/${process}/mountinfo`, MOUNTINFO_HEAD_BYTES)?.toString() ?? '')?.[0]
  const mountId = readFirstMountId(pid)
  return mountId !== undefined && ['self', '1'].some((process) => readFirstMountId(process) === mountId)
}

const MOUNTINFO_HEAD_BYTES = 32
