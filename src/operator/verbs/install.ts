import { JSON_TEXT, type VerbForm } from './form.ts'
import { COMMON, type Common, commonOf, pathOf } from './installer.ts'

export interface InstallCommand extends Common {
  verb: 'install'
  binary: string | undefined
  /** Of the executable, 64 small hexadecimal digits. */
  sha256: string | undefined
  config: string | undefined
  /** The root directory that the driver is tried in. */
  tryIn: string | undefined
}

export const install: VerbForm<InstallCommand> = {
  operands: '',
  summary: 'install or upgrade the driver on this node',
  text: [
    'Installs or upgrades the driver modekeep/fs on this node: finds the plugin directory of the running kubelet, tries ' +
      'the driver there, and shows it to kubelet by one rename. It is safe to run again at any time, also while pods ' +
      'use the old version. What fails leaves the driver that was there.',
    'install.sh, which lies beside the executable, compares its sum and runs this verb; with --uninstall it runs ' +
      '"modekeep uninstall".',
  ],
  options: {
    binary: 'the executable to install (default: this one)',
    sha256:
      'refuse the executable unless this is its SHA-256 (default: the one in SHA256SUMS beside it, as releases have it; ' +
      'where that is not there, none)',
    'plugin-dir': COMMON['plugin-dir'],
    config: "install this as the node's configuration, unless the driver finds a fault in it",
    'dry-run': COMMON['dry-run'],
    root: COMMON.root,
    'try-in':
      "try the driver in the system below DIR: for a container that has the node's directories at their own paths, " +
      'but not its C library',
    proc: COMMON.proc,
    json: JSON_TEXT,
  },
  examples: [
    'modekeep install --binary ./modekeep-new --sha256 "$(cut -d\' \' -f1 modekeep-new.sha256)"',
    './install.sh --dry-run',
    './install.sh --plugin-dir /var/lib/kubelet/volumeplugins',
    './install.sh --root /mnt/image --plugin-dir /etc/kubernetes/volumeplugins',
  ],
  read: (args) => ({
    verb: 'install',
    ...commonOf(args),
    binary: pathOf('binary', args),
    sha256: args.given.get('sha256')?.toLowerCase(),
    config: pathOf('config', args),
    tryIn: pathOf('try-in', args),
  }),
}
