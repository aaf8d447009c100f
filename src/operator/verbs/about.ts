import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

export const ABOUT_VERBS = {
  'device-plugin': {
    operands: '',
    summary: 'offer /dev/fuse to kubelet, for pods that run a FUSE daemon of their own',
    text: [
      'For pods that run a FUSE daemon of their own: offers /dev/fuse to kubelet as the resource modekeep/fuse, until ' +
        'SIGTERM or SIGINT. It waits for kubelet, registers again whenever kubelet restarts, and reports the devices as ' +
        'unhealthy while /dev/fuse does not open. What it does is told on stdout, one JSON line for each event.',
    ],
    options: {
      devices: 'how many containers of the node may have the device at once (default: 100)',
      'kubelet-dir':
        'where kubelet keeps its files (default: /var/lib/kubelet); its device-plugins directory is there whatever ' +
        "kubelet's --root-dir says",
      json: 'changes nothing: what it tells is JSON in any case',
      help: HELP_TEXT,
    },
    examples: ['modekeep device-plugin --devices 50'],
  },
  completion: {
    operands: 'bash|zsh',
    summary: 'print a completion script for a shell',
    text: [
      'Prints a script that completes verbs, options and their values. Load it in a shell, or keep it where the shell ' +
        'looks for such scripts.',
    ],
    options: { help: HELP_TEXT },
    completes: ['bash', 'zsh'],
    examples: [
      'source <(modekeep completion bash)',
      'modekeep completion bash > /etc/bash_completion.d/modekeep',
      'modekeep completion zsh > /usr/local/share/zsh/site-functions/_modekeep',
    ],
  },
  version: {
    operands: '',
    summary: 'the version',
    text: ['Prints the version; with --json also that of the runtime it carries.'],
    options: { json: JSON_TEXT, help: HELP_TEXT },
    examples: ['modekeep version --json'],
  },
  help: {
    operands: '[VERB]',
    summary: "this text, or a verb's",
    text: ["Prints an overview, or a verb's own help, as VERB --help does."],
    options: { man: 'all of it as a man page, roff on stdout', json: JSON_TEXT, help: HELP_TEXT },
    completes: 'verbs',
    examples: ['modekeep help restore', 'modekeep help --man > /usr/local/share/man/man8/modekeep.8'],
  },
} as const satisfies Readonly<Record<string, VerbForm>>
