import { dirname, normalize } from 'node:path'
import { Refusal } from '../../errors/refusal.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { findKubelets, type Kubelet } from '../kubelet/discovery.ts'
import type { InstallCommand } from '../verbs/install.ts'
import type { InstallerRun } from './site.ts'

/** The overlays of driver/kubernetes by plugin directory. */
export const OVERLAYS: Readonly<Record<string, string>> = {
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
export function checkNamedDirectory(
  job: InstallerRun<InstallCommand>,
  named: string,
  proc: string,
  root: string,
): string {
  const { admin, command, warn } = job
  const { files } = admin
  // A container has the node's files, but cannot see kubelet's executable.
  const view = root || (command.tryIn ?? '')
  const found = findKubelets(files, proc, view, 'an unseen executable is believed')
  if (found.length === 0) return 'named by --plugin-dir; no kubelet is seen, so nobody says whether it looks there'
  const wanted = identifyDirectory(files, [root], named)
  const usesNamedDirectory = ({ pid, directory }: Kubelet) =>
    directory !== undefined &&
    (normalize(directory) === normalize(named) ||
      identifyDirectory(files, [`${proc}/${pid}/root`, view], directory).some((place) => wanted.includes(place)))
  const agreeing = found.find(usesNamedDirectory)
  if (agreeing) return `named by --plugin-dir, as it is the directory of ${agreeing.kind}, pid ${agreeing.pid}`
  const here = found.filter(({ pid }) => isInNodeMounts(files, proc, pid))
  const certain = here.filter(isDirectoryCertain)
  const [first] = certain
  if (first === undefined || certain.length < here.length) {
    const uncertain = found.find((kubelet) => !certain.includes(kubelet)) as Kubelet
    const why = here.includes(uncertain) ? uncertain.why : 'it has mounts of its own'
    return `named by --plugin-dir; whether ${uncertain.kind}, pid ${uncertain.pid}, looks there is not known: ${why}`
  }
  const other = first.directory ?? ''
  const fault = `${first.kind} (pid ${first.pid}) looks for drivers in ${other}, not in ${named} (${first.why})`
  if (command.isForAnyKubelet) {
    warn(fault)
    return 'named by --plugin-dir, for any kubelet'
  }
  const overlay = OVERLAYS[other]
  throw new Refusal([
    fault,
    `on this node: --plugin-dir ${other}`,
    overlay === undefined
      ? `on a cluster: a copy of an overlay with ${other} in its three places`
      : `on a cluster: the overlay ${overlay}`,
    `if kubelet is to look in ${named} soon: --any-kubelet`,
  ])
}

/** True if the directory was read. k3s hides its arguments and its unit may be anywhere, so its default is only assumed. */
const isDirectoryCertain = ({ kind, directory, isDefault }: Kubelet) =>
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
function isInNodeMounts(files: NodeFiles, proc: string, pid: string): boolean {
  const readFirstMountId = (process: string) =>
    /^\d+ /.exec(files.head(`${proc}/${process}/mountinfo`, FIRST_LINE_BYTES)?.toString() ?? '')?.[0]
  const mountId = readFirstMountId(pid)
  return mountId !== undefined && ['self', '1'].some((process) => readFirstMountId(process) === mountId)
}

const FIRST_LINE_BYTES = 32
