import { formatError } from '../../errors/refusal.ts'
import type { Diagnosis } from '../../host/diagnosis.ts'
import type { Session } from '../../store/session.ts'
import { type ConfigurationFile, checkConfiguration } from './configuration.ts'
import { type CheckFinding, type CheckResult, type DoctorDocument, fault } from './findings.ts'
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

/** Checks the node without changes. A check that throws becomes a fault, and the other checks continue. */
export async function runDoctor(session: Session, context: DoctorContext): Promise<DoctorDocument> {
  const { host, config } = session
  const { diagnosis, configuration, executable } = context
  const checks: readonly (readonly [CheckFinding['area'], () => Iterable<CheckResult> | AsyncIterable<CheckResult>])[] =
    [
      ['kernel', () => checkKernel(diagnosis.features(), diagnosis.release())],
      ['system calls', () => checkSystemCalls(diagnosis.selfTest())],
      ['helpers', () => checkHelpers(diagnosis, config)],
      ['kubelet', () => checkKubelets(host, diagnosis, executable)],
      ['kubelet', () => checkFuseDevice(host)],
      ['runtime', () => checkRuntime(session, diagnosis)],
      ['runtime', () => checkMountOptions(session)],
      ['configuration', () => checkConfiguration(session, configuration)],
      ['state', () => checkPermissions(host, config, configuration.file)],
      ['state', () => checkFreeSpace(host, diagnosis, config.stateDir)],
      ['mounts', () => checkMounts(session)],
      ['mounts', () => checkHiddenMounts(session)],
      ['mounts', () => checkTmpfsMemory(session)],
      ['mounts', () => checkContainerRecords(session)],
      ['mounts', () => checkRootBits(session)],
      ['volumes', () => checkVolumes(session)],
    ]
  const findings: CheckFinding[] = []
  for (const [area, check] of checks) {
    try {
      for await (const result of check()) findings.push({ area, ...result })
    } catch (error) {
      const text = `this could not be checked: ${formatError(error)}`
      findings.push({ area, ...fault(text, 'remove the cause and run doctor again') })
    }
  }
  const count = (level: CheckFinding['level']) => findings.filter((finding) => finding.level === level).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}
