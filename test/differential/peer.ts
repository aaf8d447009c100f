import { execFileSync } from 'node:child_process'
import { kubeletWalk } from '../../bench/peers/kubelet-build.ts'

/**
 * Kubelet's own SetVolumeOwnership on a directory, with the policy Always: a program built once from Debian's source.
 * @throws {Error} with the reason, where it is not cached and cannot be built
 */
export function peer(): (directory: Buffer, group: number) => void {
  const program = kubeletWalk((text) => process.stdout.write(`${text}\n`))
  return (directory, group) => {
    execFileSync(program, [directory.toString(), String(group)], { stdio: ['ignore', 'pipe', 'pipe'] })
  }
}
