import { linuxDiagnosis } from '../src/host/linux/diagnosis.ts'
import type { DoctorDocument } from '../src/operator/actions/document.ts'
import type { Configuration } from '../src/operator/doctor/configuration.ts'
import { doctor } from '../src/operator/doctor/index.ts'
import type { Session } from '../src/store/session.ts'

/** Checks this node, with the program that runs as the one that should be installed. */
export function diagnose(session: Session, configuration: Configuration): Promise<DoctorDocument> {
  const { isSea } = process.getBuiltinModule('node:sea')
  const executable = isSea() ? process.execPath : undefined
  return doctor(session, { diagnosis: linuxDiagnosis, configuration, executable })
}
