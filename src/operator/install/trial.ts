import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import { type Executable, requireProgram } from './executable.ts'
import type { Job } from './job.ts'
import type { Places } from './places.ts'

const SECONDS = 30
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const LONGEST_SHOWN = 300

/** What a driver's `init` has said, as kubelet takes it. */
export interface Verdict {
  /** What is wrong with it; undefined where it is a success. */
  fault: string | undefined
  text: string
  shown: string
}

/**
 * Calls a driver's `init`, without a variable of ours.
 * @param config what it is to take for the node's configuration; without, below --root, one that leads nowhere else
 */
export async function askInit(
  job: Job<InstallCommand>,
  { root, aside }: Places,
  driver: string,
  config?: string,
): Promise<Verdict> {
  const { admin, command, stop } = job
  const isProbing = config === undefined && root !== ''
  if (isProbing) {
    const places = { stateDir: `${root}/var/lib/modekeep`, logFile: `${root}/var/log/modekeep/modekeep.log` }
    admin.files.replace(aside.probe, `${JSON.stringify(places)}\n`)
  }
  const chosen = isProbing ? aside.probe : config
  try {
    const { text, status, isLate } = await admin.tryDriver({
      command: command.tryIn === undefined ? [driver, 'init'] : ['chroot', command.tryIn, driver, 'init'],
      environment: { PATH, ...(chosen === undefined ? {} : { MODEKEEP_CONFIG: chosen }) },
      seconds: SECONDS,
      stop,
    })
    stop.throwIfAborted()
    const answer = text.replace(/\n+$/, '')
    const fault = isLate ? `no answer within ${SECONDS} seconds` : faultOf(answer, status)
    const shown = answer.replace(/[^ -~]+/g, ' ').slice(0, LONGEST_SHOWN)
    return { fault, text: answer, shown: `it said: ${shown || 'nothing'}` }
  } finally {
    if (isProbing) admin.files.remove(aside.probe)
  }
}

function faultOf(answer: string, status: number): string | undefined {
  if (status !== 0) return `exit status ${status}`
  if (answer.includes('\n')) return 'more than one line'
  if (!/^\{.*\}$/.test(answer)) return 'no JSON object'
  return /"status"\s*:\s*"Success"/.test(answer) ? undefined : 'no success'
}

/** @throws {Refusal} where a staged driver does not work on this node */
export async function requireInit(
  job: Job<InstallCommand>,
  places: Places,
  { path }: Executable,
  staged: string,
): Promise<void> {
  requireProgram(job.admin.files, path, staged)
  const { fault, text, shown } = await askInit(job, places, staged)
  if (fault === undefined) return
  const way = text.includes('error while loading shared libraries')
    ? 'install the named library (libatomic.so.1: package libatomic1 or libatomic)'
    : /Permission denied|EACCES/.test(text)
      ? `is the file system of ${places.plugins} mounted noexec?`
      : 'the driver that was installed before, if any, is untouched'
  throw new Refusal([`${path} does not work here: init gave ${fault}`, shown, way])
}
