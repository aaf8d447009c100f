import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'

/**
 * Mounts a FUSE file system whose server can be made to hang; both go with the test.
 * @param flag a file that does not exist
 * @param opcodes of the requests that are never answered then, or "all"
 */
export async function startHangingServer(directory: string, flag: string, opcodes = 'all') {
  fs.mkdirSync(directory, { recursive: true })
  const args = [`${import.meta.dirname}/hanging-server.ts`, directory, flag, opcodes]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void server.kill('SIGKILL'))
  await new Promise((done) => server.stdout.once('data', done))
  return { hang: () => fs.writeFileSync(flag, '') }
}
