import { HELP_TEXT, JSON_TEXT, type VerbForm } from './form.ts'

export const ABOUT_VERBS = {
  'device-plugin': {
    operands: '',
    summary: 'offer /dev/fuse to kubelet, for pods that run a FUSE daemon of their own',
    text: [
      'Offers /dev/fuse to kubelet as the resource modekeep/fuse, for pods that run a FUSE daemon of their own. It ends ' +
        'on SIGTERM or SIGINT.',
      'It waits for kubelet, registers again whenever kubelet restarts, and reports the devices as unhealthy while ' +
        '/dev/fuse does not open. It prints one JSON line for each event.',
    ],
    options: {
      devices: 'how many containers of the node may use the device at once (default: 100)',
      'kubelet-dir':
        'the directory that has device-plugins/kubelet.sock (default: /var/lib/kubelet, whatever ' +
        "kubelet's --root-dir says)",
      json: 'no effect: the output is JSON in any case',
      help: HELP_TEXT,
    },
    examples: ['modekeep device-plugin --devices 50'],
  },
  completion: {
    operands: 'bash|zsh',
    summary: 'print a completion script for a shell',
    text: [
      'Prints a script that completes verbs, options and their values. Load it in a shell, or save it where the shell ' +
        'looks for completion scripts.',
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
    summary: 'print the version',
    text: ['Prints the version; with --json also that of the runtime it carries.'],
    options: { json: JSON_TEXT, help: HELP_TEXT },
    examples: ['modekeep version --json'],
  },
  help: {
    operands: '[VERB]',
    summary: "print this text, or a verb's help",
    text: ["Prints an overview, or a verb's own help, as VERB --help does."],
    options: { man: 'print all help as a man page, roff on stdout', json: JSON_TEXT, help: HELP_TEXT },
    completes: 'verbs',
    examples: ['modekeep help restore', 'modekeep help --man > /usr/local/share/man/man8/modekeep.8'],
  },
} as const satisfies Readonly<Record<string, VerbForm>>
