import type { Diagnosis } from '../../host/diagnosis.ts'
import { messageOf } from '../../refusal/refusal.ts'
import type { Session } from '../../store/session.ts'
import { type Configuration, configurationFindings } from './configuration.ts'
import { devicePluginFindings } from './device-plugin.ts'
import { type CheckFinding, type DoctorDocument, type Found, fault } from './findings.ts'
import { kubeletFindings } from './kubelet.ts'
import { restrictionFindings } from './mount-options.ts'
import { helperFindings, kernelFindings, systemCallFindings } from './node.ts'
import { permissionFindings, spaceFindings } from './paths.ts'
import {
  containerFindings,
  memoryFindings,
  mountFindings,
  rootBitFindings,
  submountFindings,
  volumeFindings,
} from './records.ts'
import { runtimeFindings } from './runtime.ts'

/** What doctor knows beside the session. */
export interface Patient {
  diagnosis: Diagnosis
  configuration: Configuration
  /** This program's own file; undefined where it runs from its sources. */
  executable: string | undefined
}

/** Checks the node. Changes nothing; what cannot be checked is a fault, and the rest is checked all the same. */
export async function doctor(session: Session, patient: Patient): Promise<DoctorDocument> {
  const { host, config } = session
  const { diagnosis, configuration, executable } = patient
  const checks: readonly (readonly [CheckFinding['area'], () => Iterable<Found> | AsyncIterable<Found>])[] = [
    ['kernel', () => kernelFindings(diagnosis.features(), diagnosis.release())],
    ['system calls', () => systemCallFindings(diagnosis.selfTest())],
    ['helpers', () => helperFindings(diagnosis, config)],
    ['kubelet', () => kubeletFindings(host, diagnosis, executable)],
    ['kubelet', () => devicePluginFindings(host)],
    ['runtime', () => runtimeFindings(session, diagnosis)],
    ['runtime', () => restrictionFindings(session)],
    ['configuration', () => configurationFindings(session, configuration)],
    ['state', () => permissionFindings(host, config, configuration.file)],
    ['state', () => spaceFindings(host, diagnosis, config.stateDir)],
    ['mounts', () => mountFindings(session)],
    ['mounts', () => submountFindings(session)],
    ['mounts', () => memoryFindings(session)],
    ['mounts', () => containerFindings(session)],
    ['mounts', () => rootBitFindings(session)],
    ['volumes', () => volumeFindings(session)],
  ]
  const findings: CheckFinding[] = []
  for (const [area, check] of checks) {
    try {
      for await (const found of check()) findings.push({ area, ...found })
    } catch (error) {
      const text = `this could not be checked: ${messageOf(error)}`
      findings.push({ area, ...fault(text, 'remove the cause and run doctor again') })
    }
  }
  const count = (level: CheckFinding['level']) => findings.filter((finding) => finding.level === level).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}
