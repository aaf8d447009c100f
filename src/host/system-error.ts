import { Refusal } from '../refusal/refusal.ts'

/** A failed system call: `syscall` and `code` (ENOENT, …) for decisions, the message for people. */
export class SystemError extends Error {
  readonly code: string
  readonly syscall: string

  constructor(syscall: string, code: string, target: string, detail = '') {
    super(`${syscall} ${truncateTarget(target)}: ${code}${detail && ` (${detail})`}`)
    this.name = 'SystemError'
    this.code = code
    this.syscall = syscall
  }
}

function truncateTarget(target: string): string {
  return target.length > 200 ? `${target.slice(0, 200)}…` : target
}

/** The errno name of a failed call, of modekeep's own or of node:fs; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/**
 * Makes a system call, and tells of its failure what it means to people.
 * @param sentences by the errno's name, or several with spaces between; they may quote the kernel's words
 * @throws {Refusal} with the sentence; any other error as it is
 */
export function refuseOnErrno<T>(
  call: () => T,
  sentences: (words: string, code: string) => Readonly<Record<string, string>>,
): T {
  try {
    return call()
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    const known = Object.entries(sentences((error as Error).message, code))
    const [, sentence] = known.find(([codes]) => codes.split(' ').includes(code)) ?? []
    throw sentence === undefined ? error : new Refusal(sentence, { cause: error })
  }
}

/** What a system call gives; undefined where it fails with this errno, or one of several with spaces between. */
export function tolerateErrno<T>(codes: string, call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (codes.split(' ').includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}
