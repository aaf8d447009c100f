import type { HelperOrder } from './helpers.ts'

/**
 * The command that starts a helper whose daemon stays. Where systemd runs it gets a scope of its own: a restart of
 * kubelet ends all that is in kubelet's. Elsewhere a session of its own does, which is for the runner to give.
 * @param unique tells this scope from others of this boot
 */
export function daemonCommand(
  { program, args }: Pick<HelperOrder, 'program' | 'args'>,
  hasSystemd: boolean,
  unique: string,
): { program: string; args: readonly string[] } {
  if (!hasSystemd) return { program, args }
  const unit = `modekeep-fuse-${unique.replaceAll(/[^A-Za-z0-9]/g, '-')}`
  const scope = ['--scope', '--quiet', '--collect', `--unit=${unit}`, '--', program]
  return { program: 'systemd-run', args: [...scope, ...args] }
}
