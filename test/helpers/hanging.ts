import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { type HangingServer, spawnHangingServer } from './hanging-process.ts'

/**
 * Mounts a FUSE file system whose server can be made to hang; both go with the test.
 * @param flag a file that does not exist
 * @param opcodes of the requests that are not answered then, or "all"
 */
export async function startHangingServer(
  directory: string,
  flag: string,
  opcodes = 'all',
  files = 1,
): Promise<Pick<HangingServer, 'hang' | 'resume'>> {
  const { server, hang, resume } = await spawnHangingServer(directory, flag, opcodes, files)
  onTestFinished(() => void server.kill('SIGKILL'))
  return { hang, resume }
}

/**
 * See proc_pid_stat(5); D where any thread is in that state: the first one of a process that was killed is a zombie while
 * another one waits for the server.
 * @returns undefined for a process that has ended
 */
export function readProcessState(pid: number | undefined): string | undefined {
  const tasks = `/proc/${pid}/task`
  const ids = fs.existsSync(tasks) ? fs.readdirSync(tasks) : []
  const states = ids.map((id) => stateOfThread(`${tasks}/${id}/stat`)).filter((state) => state !== undefined)
  return states.includes('D') ? 'D' : states[0]
}

function stateOfThread(file: string): string | undefined {
  return fs.existsSync(file) ? /\) ([^ZX]) /.exec(fs.readFileSync(file, 'utf8'))?.[1] : undefined
}
