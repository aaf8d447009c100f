/**
 * Parses proc_pid_status(5).
 * @param text of /proc/PID/status; '' for a process that has ended
 * @returns the real, effective, saved and file system user ids in this user namespace, and the effective capabilities
 * as bits
 */
export function parseProcessStatus(text: string): { userIds: number[]; capabilities: bigint } {
  const field = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(text)?.[1]
  return {
    userIds: field('Uid')?.split('\t').map(Number) ?? [],
    capabilities: BigInt(`0x${field('CapEff') ?? '0'}`),
  }
}
