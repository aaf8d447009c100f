import { parseArguments } from '../src/fuse-device/arguments.ts'
import { runPlugin } from '../src/fuse-device/plugin.ts'
import { type Settings, TIMING } from '../src/fuse-device/settings.ts'
import { helpText } from '../src/operator/text/help.ts'
import { writeAll } from './streams.ts'

const OK = 0
const FAILED = 1
const USAGE = 2
const STDOUT = 1
const STDERR = 2

/** Runs until SIGTERM or SIGINT. @param argv what follows the verb. @returns 0, 1 (failed) or 2 (usage) */
export async function devicePlugin(argv: readonly string[]): Promise<number> {
  let settings: Settings
  try {
    const { directory, count, help } = parseArguments(argv)
    if (help) {
      writeAll(helpText('device-plugin'), STDOUT)
      return OK
    }
    settings = {
      directory,
      count,
      device: '/dev/fuse',
      timing: TIMING,
      now: () => performance.now(),
      random: Math.random,
      log,
    }
  } catch (error) {
    writeAll(`modekeep: device-plugin: ${error instanceof Error ? error.message : String(error)}\n`, STDERR)
    return USAGE
  }
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort())
  // Kubelet runs as root; nobody else has business on the socket.
  process.umask(0o077)
  try {
    await runPlugin(settings, stop.signal)
    return OK
  } catch (error) {
    log('error', 'failed', { message: error instanceof Error ? error.message : String(error) })
    return FAILED
  }
}

const log: Settings['log'] = (level, event, facts) => {
  writeAll(`${JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })}\n`, STDOUT)
}
