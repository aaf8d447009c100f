export interface DoctorDocument {
  verb: 'doctor'
  /** How many of each. */
  ok: number
  warnings: number
  faults: number
  findings: CheckFinding[]
}

export interface CheckFinding {
  area: 'kernel' | 'system calls' | 'helpers' | 'kubelet' | 'configuration' | 'state' | 'mounts' | 'volumes'
  level: 'ok' | 'warning' | 'fault'
  text: string
  /** What to do; '' where all is well. */
  remedy: string
}

type Area = CheckFinding['area']

/** Findings of one area. */
export function findingsOf(area: Area) {
  return {
    ok: (text: string): CheckFinding => ({ area, level: 'ok', text, remedy: '' }),
    warning: (text: string, remedy: string): CheckFinding => ({ area, level: 'warning', text, remedy }),
    fault: (text: string, remedy: string): CheckFinding => ({ area, level: 'fault', text, remedy }),
  }
}
