import { FUSE_DEVICE } from '../src/fuse-device/access.ts'
import { runPlugin, type Settings, TIMING } from '../src/fuse-device/plugin.ts'
import { FAILED, OK } from '../src/operator/operate.ts'
import type { CommandOf } from '../src/operator/verbs/index.ts'
import { messageOf } from '../src/refusal/refusal.ts'
import { tellEvent } from './events.ts'
import { keepHeapSmall } from './heap.ts'
import { endSignal } from './signals.ts'

/** Offers the node's /dev/fuse until SIGTERM or SIGINT. @returns the exit status */
export async function devicePlugin({ directory, devices }: CommandOf<'device-plugin'>): Promise<number> {
  const settings: Settings = {
    directory,
    count: devices,
    device: FUSE_DEVICE,
    timing: TIMING,
    log: tellEvent,
  }
  keepHeapSmall()
  try {
    await runPlugin(settings, endSignal())
    return OK
  } catch (error) {
    tellEvent('error', 'failed', { message: messageOf(error) })
    return FAILED
  }
}
