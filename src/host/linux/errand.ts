import { basename, dirname } from 'node:path'
import { execa } from 'execa'
import { Refusal } from '../../refusal/refusal.ts'
import { waitFor } from '../back-off.ts'
import { ERRAND, type Errand, type ErrandEnd } from '../errand.ts'
import { unlessRefused } from '../file-error.ts'
import { linesOf } from '../lines.ts'
import { nodeFs } from '../node-fs.ts'
import { removeNames } from '../write-file.ts'
import { CHILD_OPTIONS, endingOf, within } from './child.ts'
import { nameHolder, openLocked } from './locks.ts'
import { closingFd } from './open.ts'
import { argumentsFor, SELF } from './self.ts'

const LOOK_MS = 250
const UNTIL_ENDED_MS = 2000
/** More for its first words, which it has before it asks anybody: many may start at once. */
const STARTING_MS = 30_000

/**
 * Runs an errand, and gives it up where nothing is heard of it. Who waits for a FUSE daemon that has taken his request
 * does not even end when he is killed; but he makes no further call.
 * @throws {Refusal} where no process can be started; what `told` throws, and then the process is killed
 */
export async function runErrand(errand: Errand): Promise<ErrandEnd> {
  const { lock } = errand
  const child = start(errand, lock === undefined ? undefined : await waitFor(() => openLocked(lock)))
  if (child.pid === undefined) throw notStarted((await child).code)
  const exited = endingOf(child.nodeChildProcess)
  // Counted in looks: this process may itself have been stopped.
  let looks = -STARTING_MS / LOOK_MS
  let failure: { error: unknown } | undefined
  const hear = (line: string) => {
    looks = 0
    try {
      if (line !== '' && failure === undefined) errand.told(line)
    } catch (error) {
      failure = { error }
      child.kill('SIGKILL')
    }
  }
  const said = listen(child.stdout, hear)
  child.stdin.on('error', () => {})
  // It stays open: the process learns by its end that this one has ended.
  child.stdin.write(`${errand.order}\n`)
  let ending = await within(LOOK_MS, exited)
  while (ending === undefined && looks++ < errand.patience / LOOK_MS) ending = await within(LOOK_MS, exited)
  const isSilent = ending === undefined
  if (isSilent) {
    child.kill('SIGKILL')
    ending = await within(UNTIL_ENDED_MS, exited)
  } else await within(UNTIL_ENDED_MS, said)
  child.stdin.destroy()
  child.stdout.destroy()
  child.nodeChildProcess.unref()
  if (ending !== undefined && lock !== undefined)
    unlessRefused(() => removeNames(nodeFs, dirname(lock), [basename(lock)]))
  if (failure !== undefined) throw failure.error
  return { isSilent, leftBehind: ending === undefined ? child.pid : undefined, pid: child.pid, ended: exited }
}

/**
 * flock(2) is of the open file, which two processes have here: the lock is taken before the other one begins, and held
 * until its last thread has ended.
 */
function start({ handle }: Errand, lock: number | undefined) {
  using _ = lock === undefined ? undefined : closingFd(lock)
  const child = execa(SELF, [...argumentsFor(ERRAND), String(process.pid)], {
    ...CHILD_OPTIONS,
    // Its types know descriptors up to 9 only.
    stdio: ['pipe', 'pipe', 'ignore', handle as number as 3, lock === undefined ? 'ignore' : (lock as 3)],
  } as const)
  // For people alone.
  if (lock !== undefined) unlessRefused(() => nameHolder(lock, child.pid))
  return child
}

function notStarted(code: string | undefined): Refusal {
  return new Refusal(
    `the process that works where a server or a daemon may hang could not be started (${code ?? 'no reason is known'}): free memory or process numbers of the node`,
  )
}

/** @returns resolves at the end of it */
async function listen(stream: AsyncIterable<Uint8Array>, hear: (line: string) => void): Promise<void> {
  try {
    for await (const line of linesOf(stream)) hear(line)
  } catch {
    // It was given up, or its pipe broke: how the process ended tells.
  }
}
