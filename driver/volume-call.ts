import type { FlexVolumeReply } from '../src/flexvolume/reply.ts'
import { answerVolumeCall, type VolumeCall } from '../src/flexvolume/volume-call.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { forbidCoreDumps } from '../src/host/linux/secrets.ts'
import { nodeFs } from '../src/host/read-file.ts'
import { createCallLog } from '../src/log/call-log.ts'
import { appendLogLine } from '../src/log/log-file.ts'
import { createDuplicateCheck } from '../src/log/warning-dedup.ts'
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
    log: createCallLog(
      { verb, directory },
      config.logLevel,
      (line) => appendLogLine(nodeFs, config.logFile, line),
      undefined,
      createDuplicateCheck(nodeFs, config.logFile),
    ),
    configFaults: faults,
    forbidCoreDumps,
  })
}
