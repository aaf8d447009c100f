import type { NodeConfig } from '../src/config/defaults.ts'
import { type ConfigFile, readConfig } from '../src/config/read-config.ts'
import type { FlexVolumeReply } from '../src/frontends/flexvolume/protocol.ts'
import { answerVolumeCall, type VolumeCall } from '../src/frontends/flexvolume/volume-call.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { forbidCoreDumps, markProcessSupervised } from '../src/kernel/linux/processes.ts'
import { nodeFs } from '../src/kernel/read-file.ts'
import { createCallLog } from '../src/log/call-log.ts'
import { appendLogLine } from '../src/log/log-file.ts'
import { createDuplicateWarningCheck } from '../src/log/warning-dedup.ts'
import type { Session } from '../src/state/session.ts'
import { reportToLoader } from '../src/worker/serve.ts'
import { writeWholeText } from './streams.ts'

/** Answers `mount` and `unmount` on this node, in the process that kubelet started. */
export async function answerVolumeCallOnNode(call: VolumeCall, env: NodeJS.ProcessEnv): Promise<FlexVolumeReply> {
  const file = await readConfig(env)
  const supervised =
    env.MODEKEEP_SUPERVISED === undefined ? {} : enableLoaderSupervision(env.MODEKEEP_SUPERVISED, file.config)
  return answerSupervisedVolumeCall(call, file, { ...supervised, endsWithCall: true }, {})
}

/** @param facts fields of the call's log lines, in addition to the call's own */
export function answerSupervisedVolumeCall(
  call: VolumeCall,
  { config, faults }: ConfigFile,
  supervised: Pick<Session, 'endsWithCall' | 'isAlive' | 'limitSilence' | 'givenUp'>,
  facts: { door?: 'resident' },
): Promise<FlexVolumeReply> {
  const { verb, directory } = call
  return answerVolumeCall(call, {
    host: linuxHost,
    config,
    ...supervised,
    log: createCallLog(
      { verb, directory, ...facts },
      config.logLevel,
      (line) => appendLogLine(nodeFs, config.logFile, line),
      undefined,
      createDuplicateWarningCheck(nodeFs, config.logFile),
    ),
    configFaults: faults,
    forbidCoreDumps,
  })
}

function enableLoaderSupervision(value: string, config: NodeConfig) {
  markProcessSupervised()
  return reportToLoader(value, config, writeWholeText)
}
