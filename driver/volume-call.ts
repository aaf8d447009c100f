import type { FlexVolumeReply } from '../src/flexvolume/reply.ts'
import { answerVolumeCall, type VolumeCall } from '../src/flexvolume/volume-call.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { forbidCoreDumps } from '../src/host/linux/secrets.ts'
import { nodeFs } from '../src/host/read-file.ts'
import { callLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import { saidLately } from '../src/log/said-lately.ts'
import { readConfig } from './config.ts'
import { reportToLoader } from './supervised.ts'

/** Answers `mount` and `unmount` on this node. */
export async function volumeCall(call: VolumeCall, env: NodeJS.ProcessEnv): Promise<FlexVolumeReply> {
  const { config, faults } = await readConfig(env)
  const supervised = env.MODEKEEP_SUPERVISED === undefined ? {} : reportToLoader(env.MODEKEEP_SUPERVISED, config)
  const { verb, directory } = call
  return answerVolumeCall(call, {
    host: linuxHost,
    config,
    ...supervised,
    log: callLog(
      { verb, directory },
      config.logLevel,
      (line) => appendLine(nodeFs, config.logFile, line),
      undefined,
      saidLately(nodeFs, config.logFile),
    ),
    configFaults: faults,
    forbidCoreDumps,
  })
}
