import { quoted } from '../../refusal/refusal.ts'
import type { Arguments, VerbForm } from './form.ts'

type Shell = 'bash' | 'zsh'

export const completion: VerbForm<{ verb: 'completion'; shell: Shell }> = {
  operands: 'bash|zsh',
  summary: 'print a completion script for a shell',
  text: [
    'Prints a script that completes verbs, options and their values. Load it in a shell, or save it where the shell ' +
      'looks for completion scripts.',
  ],
  options: {},
  completes: ['bash', 'zsh'],
  examples: [
    'source <(modekeep completion bash)',
    'modekeep completion bash > /etc/bash_completion.d/modekeep',
    'modekeep completion zsh > /usr/local/share/zsh/site-functions/_modekeep',
  ],
  read: (args) => ({ verb: 'completion', shell: shellOf(args) }),
}

function shellOf({ words, faults }: Arguments): Shell {
  const [shell] = words
  if (words.length === 1 && (shell === 'bash' || shell === 'zsh')) return shell
  const got = words.length === 0 ? 'none' : quoted(words.length === 1 ? shell : words)
  faults.push(`completion takes the name of a shell, got ${got}: write bash or zsh`)
  return 'bash'
}
