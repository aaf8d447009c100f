import type { Diagnosis } from '../../host/diagnosis.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { type CheckFinding, findingsOf } from './findings.ts'

const { ok, fault } = findingsOf('helpers')

/** What a kind of volume runs; the kernel mounts the others by itself. */
function programsOf(fsType: string): string[] {
  if (fsType === 'nfs' || fsType === 'nfs4' || fsType === 'cifs') return [`mount.${fsType}`]
  return fsType.startsWith('fuse.') ? [fsType.slice('fuse.'.length), 'fusermount3'] : []
}

/** Only what the configuration lets pods ask for. */
export function helperFindings({ findProgram }: Diagnosis, { allowedFsTypes }: NodeConfig): CheckFinding[] {
  const programs = [...new Set(allowedFsTypes.flatMap(programsOf))]
  if (programs.length === 0) return [ok(`no helper program is needed for ${allowedFsTypes.join(', ') || 'no volume'}`)]
  return programs.map((program) => {
    try {
      return ok(`${program} is ${findProgram(program)}`)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const [text, remedy = 'install it'] = error.message.split(': ')
      return fault(text ?? error.message, `${remedy.split(';')[0]}, or take its type out of allowedFsTypes`)
    }
  })
}
