import * as os from 'node:os'
import { runCommand } from '../scripts/fetch/command.ts'

/** What decides the numbers. No host name, no paths. */
export function describeMachine(workDirectory: string): Record<string, string> {
  const [cpu] = os.cpus()
  return {
    CPU: cpu?.model.trim() ?? 'unknown',
    cores: String(os.availableParallelism()),
    memory: `${Math.round(os.totalmem() / 2 ** 30)} GiB`,
    kernel: `${os.type()} ${os.release()} ${os.machine()}`,
    // The journal's fsync goes there, and so do the images of ext4 and xfs.
    disk: runCommand('findmnt', ['-n', '-o', 'FSTYPE', '-T', workDirectory]).trim(),
    tools: ['chgrp', 'bash', 'jq'].map(version).join(', '),
  }
}

function version(tool: string): string {
  try {
    return (
      runCommand(tool, ['--version'])
        .split('\n')[0]
        ?.replace(/-release .*/, '') ?? tool
    )
  } catch {
    return `${tool} absent`
  }
}
