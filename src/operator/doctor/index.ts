import type { Diagnosis } from '../../host/diagnosis.ts'
import { messageOf } from '../../refusal/refusal.ts'
import type { Session } from '../../store/session.ts'
import { type Configuration, configurationFindings } from './configuration.ts'
import { type CheckFinding, type DoctorDocument, findingsOf } from './findings.ts'
import { helperFindings } from './helpers.ts'
import { kernelFindings, systemCallFindings } from './kernel.ts'
import { kubeletFindings } from './kubelet.ts'
import { mountFindings } from './mounts.ts'
import { permissionFindings } from './permissions.ts'
import { spaceFindings } from './space.ts'
import { volumeFindings } from './volumes.ts'

/** What doctor knows beside the session. */
export interface Patient {
  diagnosis: Diagnosis
  configuration: Configuration
  /** This program's own file; undefined where it runs from its sources. */
  executable: string | undefined
}

type Area = CheckFinding['area']

/** Checks the node. Changes nothing; what cannot be checked is a fault, and the rest is checked all the same. */
export async function doctor(session: Session, patient: Patient): Promise<DoctorDocument> {
  const { host, config } = session
  const { diagnosis, configuration, executable } = patient
  const checks: readonly (readonly [Area, () => CheckFinding[] | Promise<CheckFinding[]>])[] = [
    ['kernel', () => kernelFindings(diagnosis.features())],
    ['system calls', () => systemCallFindings(diagnosis.selfTest())],
    ['helpers', () => helperFindings(diagnosis, config)],
    ['kubelet', () => kubeletFindings(host, diagnosis, executable)],
    ['configuration', () => configurationFindings(host, config, configuration)],
    ['state', () => permissionFindings(host, config, configuration.file)],
    ['state', () => spaceFindings(host, diagnosis, config.stateDir)],
    ['mounts', () => mountFindings(session)],
    ['volumes', () => volumeFindings(session)],
  ]
  const findings: CheckFinding[] = []
  for (const [area, check] of checks) findings.push(...(await orFault(area, check)))
  const count = (level: CheckFinding['level']) => findings.filter((finding) => finding.level === level).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}

async function orFault(area: Area, check: () => CheckFinding[] | Promise<CheckFinding[]>): Promise<CheckFinding[]> {
  try {
    return await check()
  } catch (error) {
    return [
      findingsOf(area).fault(`this could not be checked: ${messageOf(error)}`, 'remove the cause and run doctor again'),
    ]
  }
}
