import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { FILE_TYPE_MASK, getErrno, REGULAR_FILE_TYPE } from '../../kernel/host.ts'
import { FileError } from '../../kernel/system-error.ts'
import type { Session } from '../../state/session.ts'
import type { OperatorProcess } from './verb.ts'

/** The name of stdout as a file. */
export const STDOUT_FILE_NAME = '-'

/** @property file an absolute path, or '-' for stdout. With `isForced` an existing file is replaced. */
export interface OutputFile {
  file: string
  isForced: boolean
}

/** @throws {Refusal} if the file exists and may not be replaced, or if stdout is a terminal */
export function assertWritableOutput(
  { host }: Session,
  { file, isForced }: OutputFile,
  { isTerminal }: Pick<OperatorProcess, 'isTerminal'>,
  existingRemedy = 'name another file, or replace it with --force',
): void {
  if (file === STDOUT_FILE_NAME) {
    if (isTerminal)
      throw Refusal.of('command', 'stdout is a terminal', 'name a file, as in --output FILE, or write to a pipe')
    return
  }
  const existing = host.files.stat(file)
  if (existing === undefined) return
  if ((existing.mode & FILE_TYPE_MASK) !== REGULAR_FILE_TYPE)
    throw Refusal.of('command', `${quoteValue(file)} is no regular file`, 'name another, or write to stdout')
  if (!isForced) throw Refusal.of('command', `${quoteValue(file)} is there already`, existingRemedy)
}

/**
 * Writes all pieces to stdout, or to a file that gets its name when it is complete. Only its owner can read the file.
 * @returns the number of bytes written
 */
export async function writeOutputPieces(
  { host }: Session,
  pieces: Iterable<Uint8Array>,
  { file, isForced }: OutputFile,
  { write, interrupted }: Pick<OperatorProcess, 'write' | 'interrupted'>,
): Promise<number> {
  let bytes = 0
  if (file === STDOUT_FILE_NAME) {
    for (const piece of pieces) {
      await write(piece).catch(throwStdoutError)
      bytes += piece.length
    }
    return bytes
  }
  using made = host.files.create(file, isForced)
  using listening = new DisposableStack()
  const remove = () => made[Symbol.dispose]()
  interrupted.addEventListener('abort', remove)
  listening.defer(() => interrupted.removeEventListener('abort', remove))
  const pace = createPeriodicYield()
  for (const piece of pieces) {
    made.write(piece)
    bytes += piece.length
    await pace(piece.length)
  }
  made.finish()
  return bytes
}

function throwStdoutError(error: unknown): never {
  const code = getErrno(error)
  throw code === undefined ? error : new FileError('write to', 'stdout', code, error as Error)
}

const YIELD_INTERVAL_BYTES = 4 << 20

/** Returns a function that yields to other events, such as Ctrl-C, every few megabytes. */
export function createPeriodicYield(): (bytes: number) => Promise<void> {
  let since = 0
  return async (bytes) => {
    since += bytes
    if (since < YIELD_INTERVAL_BYTES) return
    since = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
