/**
 * What proc_pid_status(5) says of a process.
 * @param text of /proc/PID/status; '' for one that has ended
 * @returns its real, effective, saved and file system user ids, as this user namespace has them, and the capabilities
 *   that it can use, as bits
 */
export function parseProcessStatus(text: string): { userIds: number[]; capabilities: bigint } {
  const field = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(text)?.[1]
  return {
    userIds: field('Uid')?.split('\t').map(Number) ?? [],
    capabilities: BigInt(`0x${field('CapEff') ?? '0'}`),
  }
}
