import { runPlugin, type Settings, TIMING } from '../src/fuse-device/plugin.ts'
import { FAILED, OK } from '../src/operator/operate.ts'
import type { CommandOf } from '../src/operator/verbs/index.ts'
import { messageOf } from '../src/refusal/refusal.ts'
import { endSignal } from './signals.ts'
import { writeAll } from './streams.ts'

/** Offers the node's /dev/fuse until SIGTERM or SIGINT. @returns the exit status */
export async function devicePlugin({ directory, devices }: CommandOf<'device-plugin'>): Promise<number> {
  const settings: Settings = {
    directory,
    count: devices,
    device: '/dev/fuse',
    timing: TIMING,
    log,
  }
  try {
    await runPlugin(settings, endSignal())
    return OK
  } catch (error) {
    log('error', 'failed', { message: messageOf(error) })
    return FAILED
  }
}

const log: Settings['log'] = (level, event, facts) => {
  writeAll(`${JSON.stringify({ time: new Date().toISOString(), level, pid: process.pid, event, ...facts })}\n`)
}
