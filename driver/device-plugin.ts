import type { CommandOfVerb } from '../src/cli/commands/index.ts'
import { EXIT_FAILURE, EXIT_SUCCESS } from '../src/cli/operate.ts'
import { formatError } from '../src/errors/refusal.ts'
import { FUSE_DEVICE_PATH } from '../src/frontends/device-plugin/decide.ts'
import {
  DEVICE_PLUGIN_TIMING,
  type DevicePluginSettings,
  runDevicePlugin,
} from '../src/frontends/device-plugin/plugin.ts'
import { createTerminationSignal, keepHeapSmall } from './process.ts'
import { logEvent } from './server.ts'

/** Offers the node's /dev/fuse until SIGTERM or SIGINT. @returns the exit status */
export async function runDevicePluginCommand({ directory, devices }: CommandOfVerb<'device-plugin'>): Promise<number> {
  const settings: DevicePluginSettings = {
    directory,
    count: devices,
    device: FUSE_DEVICE_PATH,
    timing: DEVICE_PLUGIN_TIMING,
    log: logEvent,
  }
  keepHeapSmall()
  try {
    await runDevicePlugin(settings, createTerminationSignal())
    return EXIT_SUCCESS
  } catch (error) {
    logEvent('error', 'failed', { message: formatError(error) })
    return EXIT_FAILURE
  }
}
