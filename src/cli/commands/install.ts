import { readPathOption } from './operands.ts'
import type { VerbArguments, VerbForm } from './verb.ts'

export type InstallCommand = ReturnType<typeof installVerb.read>
export type UninstallCommand = ReturnType<typeof uninstallVerb.read>

const COMMON_INSTALL_OPTIONS = {
  'plugin-dir': "kubelet's volume plugin directory (default: what the running kubelet uses)",
  'dry-run': 'print every step and change nothing; needs no root',
  root: 'work on the system below DIR (an image), where no kubelet is looked for',
  proc: 'look for kubelets and mounts in this proc directory (default: /proc)',
}

function readCommonInstallOptions(args: VerbArguments) {
  return {
    isDry: args.given.has('dry-run'),
    /** Kubelet's volume plugin directory; undefined: that of the running kubelet. */
    pluginDir: args.given.get('plugin-dir'),
    /** Root directory of the system to install on; undefined: the running system. */
    root: readPathOption('root', args),
    proc: readPathOption('proc', args),
  }
}

export const installVerb = {
  summary: 'install or upgrade the driver on this node',
  text: [
    'Installs or upgrades the driver modekeep/fs on this node: finds the plugin directory of the running kubelet, tries ' +
      'the driver there, and shows it to kubelet by one rename. It is safe to run again at any time, also while pods ' +
      'use the old version. What fails leaves the driver that was there.',
    'A directory that is named with --plugin-dir is compared with that of the kubelet, where one is seen: it is refused ' +
      'where kubelet would never look for the driver.',
    'install.sh, which is beside the executable, compares its sum and runs this verb; with --uninstall it runs ' +
      '"modekeep uninstall".',
  ],
  options: {
    binary: 'the executable to install (default: this one)',
    sha256:
      'refuse the executable unless this is its SHA-256 (default: the one in SHA256SUMS beside it, as releases have it; ' +
      'where that is not there, none)',
    config: "install this as the node's configuration, unless the driver finds a fault in it",
    'node-root': "read kubelet's configuration below DIR: for a container that has the node's root directory there",
    'any-kubelet': 'install in the directory of --plugin-dir although the kubelet that runs looks in another one',
    ...COMMON_INSTALL_OPTIONS,
  },
  examples: [
    'modekeep install --binary ./modekeep-new --sha256 "$(cut -d\' \' -f1 modekeep-new.sha256)"',
    './install.sh --dry-run',
    './install.sh --plugin-dir /var/lib/kubelet/volumeplugins',
    './install.sh --root /mnt/image --plugin-dir /etc/kubernetes/volumeplugins',
  ],
  read: (args: VerbArguments) => ({
    verb: 'install' as const,
    ...readCommonInstallOptions(args),
    binary: readPathOption('binary', args),
    /** SHA-256 of the executable, 64 lower-case hexadecimal digits. */
    sha256: args.given.get('sha256')?.toLowerCase(),
    config: readPathOption('config', args),
    /** Root directory of the node, as this process sees it; undefined: its own. */
    nodeRoot: readPathOption('node-root', args),
    /** Accepts a directory that the running kubelet does not use. */
    isForAnyKubelet: args.given.has('any-kubelet'),
  }),
} satisfies VerbForm

export const uninstallVerb = {
  summary: 'remove the driver from this node',
  text: [
    'Removes the driver and the link /usr/local/sbin/modekeep. State, logs and configuration stay. It is refused while ' +
      'volumes of modekeep/fs are mounted: without the driver kubelet cannot unmount them.',
  ],
  options: {
    purge: 'remove state, logs and configuration too, the record of changed owners and modes included',
    force: 'even while volumes of modekeep/fs are mounted',
    ...COMMON_INSTALL_OPTIONS,
  },
  examples: ['modekeep uninstall --dry-run', './install.sh --uninstall --purge'],
  read: (args: VerbArguments) => ({
    verb: 'uninstall' as const,
    ...readCommonInstallOptions(args),
    isPurging: args.given.has('purge'),
    isForced: args.given.has('force'),
  }),
} satisfies VerbForm
