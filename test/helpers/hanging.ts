import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'

/**
 * Mounts a FUSE file system whose server can be made to hang; both go with the test.
 * @param flag a file that does not exist
 * @param opcodes of the requests that are not answered then, or "all"
 */
export async function startHangingServer(directory: string, flag: string, opcodes = 'all', files = 1) {
  fs.mkdirSync(directory, { recursive: true })
  const args = [`${import.meta.dirname}/hanging-server.ts`, directory, flag, opcodes, String(files)]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void server.kill('SIGKILL'))
  await new Promise((done) => server.stdout.once('data', done))
  return {
    /** @param order see hanging-server.ts */
    hang(order = '') {
      // In one step: half an order is another one.
      fs.writeFileSync(`${flag}.new`, order)
      fs.renameSync(`${flag}.new`, flag)
    },
    /** Answers what waits too. */
    resume() {
      fs.rmSync(flag)
      // It looks when it is asked.
      spawnSync('stat', ['-f', directory], { timeout: 10_000, killSignal: 'SIGKILL' })
    },
  }
}

/**
 * See proc_pid_stat(5); D where any thread is in that state: the first one of a process that was killed is a zombie while
 * another one waits for the server.
 * @returns undefined for a process that has ended
 */
export function stateOf(pid: number | undefined): string | undefined {
  const tasks = `/proc/${pid}/task`
  const ids = fs.existsSync(tasks) ? fs.readdirSync(tasks) : []
  const states = ids.map((id) => stateOfThread(`${tasks}/${id}/stat`)).filter((state) => state !== undefined)
  return states.includes('D') ? 'D' : states[0]
}

function stateOfThread(file: string): string | undefined {
  return fs.existsSync(file) ? /\) ([^ZX]) /.exec(fs.readFileSync(file, 'utf8'))?.[1] : undefined
}
