import { formatError } from '../../errors/refusal.ts'
import type { Diagnosis } from '../../host/linux/diagnosis.ts'
import type { Session } from '../../store/session.ts'
import { type ConfigurationFile, checkConfiguration } from './configuration.ts'
import { type CheckResult, fault } from './findings.ts'
import { checkFuseDevice, checkKubelets } from './kubelet.ts'
import { checkHelpers, checkKernel, checkSystemCalls } from './node.ts'
import { checkFreeSpace, checkPermissions } from './paths.ts'
import {
  checkContainerRecords,
  checkHiddenMounts,
  checkMounts,
  checkRootBits,
  checkTmpfsMemory,
  checkVolumes,
} from './records.ts'
import { checkMountOptions, checkRuntime } from './runtime.ts'

/** Input of doctor in addition to the session. */
export interface DoctorContext {
  diagnosis: Diagnosis
  configuration: ConfigurationFile
  /** This program's own file; undefined if it runs from its sources. */
  executable: string | undefined
}

/** Every check, by the area under which doctor reports it. */
const CHECKS = {
  kernel: [({ diagnosis }) => checkKernel(diagnosis.features(), diagnosis.release())],
  'system calls': [({ diagnosis }) => checkSystemCalls(diagnosis.selfTest())],
  helpers: [({ diagnosis }, { config }) => checkHelpers(diagnosis, config)],
  kubelet: [
    ({ diagnosis, executable }, { host }) => checkKubelets(host, diagnosis, executable),
    (_, { host }) => checkFuseDevice(host),
  ],
  runtime: [({ diagnosis }, session) => checkRuntime(session, diagnosis), (_, session) => checkMountOptions(session)],
  configuration: [({ configuration }, session) => checkConfiguration(session, configuration)],
  state: [
    ({ configuration }, { host, config }) => checkPermissions(host, config, configuration.file),
    ({ diagnosis }, { host, config }) => checkFreeSpace(host, diagnosis, config.stateDir),
  ],
  mounts: [checkMounts, checkHiddenMounts, checkTmpfsMemory, checkContainerRecords, checkRootBits].map(
    (check): Check =>
      (_, session) =>
        check(session),
  ),
  volumes: [(_, session) => checkVolumes(session)],
} satisfies Readonly<Record<string, readonly Check[]>>

type Check = (context: DoctorContext, session: Session) => Iterable<CheckResult> | AsyncIterable<CheckResult>

export interface CheckFinding extends CheckResult {
  area: keyof typeof CHECKS
}

export interface DoctorDocument {
  verb: 'doctor'
  /** Number of findings of each level. */
  ok: number
  warnings: number
  faults: number
  findings: CheckFinding[]
}

/** Checks the node without changes. A check that throws becomes a fault, and the other checks continue. */
export async function runDoctor(session: Session, context: DoctorContext): Promise<DoctorDocument> {
  const findings: CheckFinding[] = []
  for (const [area, checks] of Object.entries(CHECKS) as [CheckFinding['area'], readonly Check[]][]) {
    for (const check of checks) {
      try {
        for await (const result of check(context, session)) findings.push({ area, ...result })
      } catch (error) {
        const text = `this could not be checked: ${formatError(error)}`
        findings.push({ area, ...fault(text, 'remove the cause and run doctor again') })
      }
    }
  }
  const count = (level: CheckFinding['level']) => findings.filter((finding) => finding.level === level).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}
