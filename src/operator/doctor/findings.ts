export interface DoctorDocument {
  verb: 'doctor'
  /** How many of each. */
  ok: number
  warnings: number
  faults: number
  findings: CheckFinding[]
}

export interface CheckFinding extends CheckResult {
  area: 'kernel' | 'system calls' | 'helpers' | 'kubelet' | 'runtime' | 'configuration' | 'state' | 'mounts' | 'volumes'
}

/** What a check says. */
export interface CheckResult {
  level: 'ok' | 'warning' | 'fault'
  text: string
  /** What to do; '' where all is well. */
  remedy: string
}

export const ok = (text: string): CheckResult => ({ level: 'ok', text, remedy: '' })
export const warning = (text: string, remedy: string): CheckResult => ({ level: 'warning', text, remedy })
export const fault = (text: string, remedy: string): CheckResult => ({ level: 'fault', text, remedy })

/** Of a directory that is not looked at. */
export const unresponsive = (path: string) =>
  warning(
    `${path} does not respond: its server or daemon hangs, or a process keeps a directory of the path locked`,
    'repair the server or end that process on the node',
  )
