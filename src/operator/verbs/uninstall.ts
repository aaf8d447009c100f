import { JSON_TEXT, type VerbForm } from './form.ts'
import { COMMON, type Common, commonOf } from './installer.ts'

export interface UninstallCommand extends Common {
  verb: 'uninstall'
  isPurging: boolean
  isForced: boolean
}

export const uninstall: VerbForm<UninstallCommand> = {
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
  },
  examples: ['modekeep uninstall --dry-run', './install.sh --uninstall --purge'],
  read: (args) => ({
    verb: 'uninstall',
    ...commonOf(args),
    isPurging: args.given.has('purge'),
    isForced: args.given.has('force'),
  }),
}
