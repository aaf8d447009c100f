import type { HelperOrder } from './helpers.ts'

type Command = Pick<HelperOrder, 'program' | 'args'>

/**
 * The command that starts a helper in a scope of systemd's, where a restart of kubelet, which ends all that is in
 * kubelet's own, does not reach its daemon.
 * @param unique tells this scope from others of this boot
 */
export function scopedCommand({ program, args }: Command, unique: string): Command {
  const unit = `modekeep-fuse-${unique.replaceAll(/[^A-Za-z0-9]/g, '-')}`
  const scope = ['--scope', '--quiet', '--collect', `--unit=${unit}`, '--', program]
  return { program: 'systemd-run', args: [...scope, ...args] }
}
