/** A failed system call: `syscall` and `code` (ENOENT, …) for decisions, the message for people. */
export class SystemError extends Error {
  readonly code: string
  readonly syscall: string

  constructor(syscall: string, code: string, target: string, detail = '') {
    super(`${syscall} ${cut(target)}: ${code}${detail && ` (${detail})`}`)
    this.name = 'SystemError'
    this.code = code
    this.syscall = syscall
  }
}

function cut(target: string): string {
  return target.length > 200 ? `${target.slice(0, 200)}…` : target
}

/** The errno name of a failed call, of modekeep's own or of node:fs; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
