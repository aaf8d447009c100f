import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'

export interface HangingServer {
  readonly server: ChildProcess
  /** @param order see hanging-server.ts */
  hang(order?: string): void
  /** Answers what waits too. */
  resume(): void
}

/** Mounts a FUSE file system whose server can be made to hang. See startHangingServer. */
export async function spawnHangingServer(
  directory: string,
  flag: string,
  opcodes: string,
  files: number,
): Promise<HangingServer> {
  fs.mkdirSync(directory, { recursive: true })
  const args = [`${import.meta.dirname}/hanging-server.ts`, directory, flag, opcodes, String(files)]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((done) => server.stdout.once('data', done))
  return {
    server,
    hang(order = '') {
      // In one step: half an order is another one.
      fs.writeFileSync(`${flag}.new`, order)
      fs.renameSync(`${flag}.new`, flag)
    },
    resume() {
      fs.rmSync(flag)
      // It looks when it is asked.
      spawnSync('stat', ['-f', directory], { timeout: 10_000, killSignal: 'SIGKILL' })
    },
  }
}
