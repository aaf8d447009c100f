import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

const COMMON = {
  'plugin-dir': "kubelet's volume plugin directory (default: what the running kubelet uses)",
  'dry-run': 'print every step and change nothing; needs no root',
  root: 'work on the system below DIR (an image), where no kubelet is looked for',
  proc: 'look for kubelets and mounts in this proc directory (default: /proc)',
  json: JSON_TEXT,
  help: HELP_TEXT,
}

export const INSTALL_VERBS = {
  install: {
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
      help: HELP_TEXT,
    },
    examples: [
      'modekeep install --binary ./modekeep-new --sha256 "$(cut -d\' \' -f1 modekeep-new.sha256)"',
      './install.sh --dry-run',
      './install.sh --plugin-dir /var/lib/kubelet/volumeplugins',
      './install.sh --root /mnt/image --plugin-dir /etc/kubernetes/volumeplugins',
    ],
  },
  uninstall: {
    operands: '',
    summary: 'remove the driver from this node',
    text: [
      'Removes the driver and the link /usr/local/sbin/modekeep. State, logs and configuration stay. It is refused while ' +
        'volumes of modekeep/fs are mounted: without the driver kubelet cannot unmount them.',
    ],
    options: {
      'plugin-dir': COMMON['plugin-dir'],
      purge: 'remove state, logs and configuration too, the record of changed owners and modes included',
      force: 'even while volumes of modekeep/fs are mounted',
      'dry-run': COMMON['dry-run'],
      root: COMMON.root,
      proc: COMMON.proc,
      json: JSON_TEXT,
      help: HELP_TEXT,
    },
    examples: ['modekeep uninstall --dry-run', './install.sh --uninstall --purge'],
  },
} as const satisfies Readonly<Record<string, VerbForm>>
