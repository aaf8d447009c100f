/** One result of a check. */
export interface CheckResult {
  level: 'ok' | 'warning' | 'fault'
  text: string
  /** Remedy; '' for an `ok`. */
  remedy: string
}

export const createOkResult = (text: string): CheckResult => ({ level: 'ok', text, remedy: '' })
export const createWarningResult = (text: string, remedy: string): CheckResult => ({ level: 'warning', text, remedy })
export const createFaultResult = (text: string, remedy: string): CheckResult => ({ level: 'fault', text, remedy })

/** The warning for a directory that is not checked because lookups would block. */
export const createUnresponsiveWarning = (path: string) =>
  createWarningResult(
    `${path} does not respond: its server or daemon hangs, or a process keeps a directory of the path locked`,
    'repair the server or end that process on the node',
  )
