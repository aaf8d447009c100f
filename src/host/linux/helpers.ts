import { existsSync } from 'node:fs'
import { daemonCommand } from '../daemon-command.ts'
import type { HelperOrder, Helpers } from '../helpers.ts'

const MOST_OUTPUT = 4096

/** A stand-in: see helpers.ts for what is promised. */
export const linuxHelpers: Helpers = { run }

async function run(order: HelperOrder): Promise<void> {
  const { spawn } = process.getBuiltinModule('node:child_process')
  const unique = `${process.pid}-${process.hrtime.bigint()}`
  const { program, args } = daemonCommand(order, existsSync('/run/systemd/system'), unique)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...order.environment }
  const child = spawn(program, args, { env, cwd: '/', detached: true, stdio: 'pipe' })
  let said = ''
  const hear = (data: Buffer) => {
    if (said.length < MOST_OUTPUT) said += data
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  child.stdin.on('error', () => {}).end(order.input)
  const timer = setTimeout(() => {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
    reject(new Error(`${order.program} did not end within ${order.timeoutSeconds} s`))
  }, order.timeoutSeconds * 1000)
  child.on('error', reject)
  // Not "close": a child of the daemon's may keep the streams open.
  child.on('exit', (code, signal) => {
    if (code === 0) resolve()
    else reject(new Error(`${order.program} ended with ${signal ?? code}: ${said.trim()}`))
  })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    child.unref()
  }
}
