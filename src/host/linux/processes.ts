import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { retryUntilDefined } from '../back-off.ts'
import { tolerateSystemErrors } from '../file-error.ts'
import { HELPER_MARK } from '../helpers.ts'
import type { Daemons, ProcessId } from '../host.ts'
import { parseProcessStatus } from '../process-status.ts'
import { readText } from '../read-file.ts'
import { systemCall } from './kernel.ts'
import { findLockHolders } from './lock-holders.ts'
import { deferCloseFd } from './open.ts'

/** What proc(5) says of a process that still runs. */
interface ProcessStat {
  /** One letter: R, S, D, T (stopped), … */
  state: string
  group: number
  session: number
  /** In clock ticks after the boot: tells it from a later process of its number. */
  start: string
}

/** Undefined for one that has ended, whether or not its parent has waited for it. */
export function readProcessStat(pid: number): ProcessStat | undefined {
  // They follow the name, which may itself hold parentheses.
  const fields = readProcText(pid, 'stat').split(') ').at(-1)?.split(' ') ?? []
  const [state = '', , group, session] = fields
  if (!/^[^ZX]$/.test(state)) return undefined
  return { state, group: Number(group), session: Number(session), start: fields[19] ?? '' }
}

function listProcessIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

type ProcFile = 'stat' | 'status' | 'cmdline' | 'environ'

/** Of arguments and variables each is ended by a NUL; '' for a process that has ended, or is about to. */
function readProcText(pid: number, file: ProcFile): string {
  // They are read from its memory, which may be a file of a daemon that never answers.
  if ((file === 'cmdline' || file === 'environ') && !sharesMounts(pid)) return ''
  return tolerateSystemErrors(() => readText(`/proc/${pid}/${file}`)) ?? ''
}

/** Whether a process is in the mount namespace of this one, as all are that it has started, and none of a pod is. */
function sharesMounts(pid: number): boolean {
  const namespaceOf = (which: number | 'self') => tolerateSystemErrors(() => readlinkSync(`/proc/${which}/ns/mnt`))
  return namespaceOf(pid) === namespaceOf('self')
}

const pidfdOpen = systemCall('pidfd_open')
const pidfdSendSignal = systemCall('pidfd_send_signal')

/**
 * Looks at a process that is held meanwhile: all that was read is of one process, and `kill` reaches no other one, though
 * its number may be another's by then.
 * @returns what was found; undefined for a process that has ended
 */
function withPidfd<T>(pid: number, look: (kill: () => void) => T): T | undefined {
  const handle = pidfdOpen(pid)
  if (handle < 0) return undefined
  using _ = deferCloseFd(handle)
  const found = look(() => void pidfdSendSignal(handle, constants.signals.SIGKILL))
  // Signal 0 only asks whether it is there: where it has been reaped, something else may have been read.
  return pidfdSendSignal(handle, 0) < 0 ? undefined : found
}

/**
 * Whether modekeep has started a process: it runs as the user that modekeep runs as, was not lent that by a set-uid
 * program, and has the mark. Anybody may choose arguments and variables, so of other users' processes neither is read:
 * that would also wait for what they hold.
 */
function isStartedByModekeep(
  pid: number,
  isWanted: (args: string) => boolean,
  isMark: (variable: string) => boolean,
): boolean {
  return (
    hasOwnUserIds(pid) &&
    isWanted(readProcText(pid, 'cmdline')) &&
    readProcText(pid, 'environ').split('\0').some(isMark) &&
    !hasRaisedRights(pid)
  )
}

/** Whether all four user ids of a process are those of this one: who may see its /proc/PID says less. */
function hasOwnUserIds(pid: number): boolean {
  const own = process.geteuid?.()
  const { userIds } = parseProcessStatus(readProcText(pid, 'status'))
  return userIds.length > 0 && userIds.every((uid) => uid === own)
}

// include/uapi/linux/auxvec.h: 0 but in a program that was given rights that its caller does not have.
const AT_SECURE = 23n

function hasRaisedRights(pid: number): boolean {
  const auxiliary = tolerateSystemErrors(() => readFileSync(`/proc/${pid}/auxv`)) ?? Buffer.alloc(0)
  for (let at = 0; at + 16 <= auxiliary.length; at += 16) {
    if (auxiliary.readBigUInt64LE(at) === AT_SECURE) return auxiliary.readBigUInt64LE(at + 8) !== 0n
  }
  return true
}

/**
 * Kills the process of this program that has a lock, was called by this word, and is not a child of this one's parent: who it
 * works for has ended, as only one may have such children.
 * @param lock the file, by a path without links
 * @returns its number
 */
export function endAbandoned(lock: string, word: string): number | undefined {
  const { ino } = tolerateSystemErrors(() => statSync(lock, { bigint: true })) ?? {}
  if (ino === undefined) return undefined
  const isLeft = (pid: number) =>
    pid !== process.pid &&
    hasOwnUserIds(pid) &&
    !hasRaisedRights(pid) &&
    hasFirstArgument(pid, word) &&
    readParentPid(pid) !== process.ppid
  for (const pid of findLockHolders(lock, ino)) {
    const isEnded = withPidfd(pid, (kill) => {
      if (!isLeft(pid)) return false
      kill()
      return true
    })
    if (isEnded) return pid
  }
  return undefined
}

const hasFirstArgument = (pid: number, word: string) => readProcText(pid, 'cmdline').split('\0')[1] === word

const readParentPid = (pid: number) => Number(/^PPid:\s*(\d+)$/m.exec(readProcText(pid, 'status'))?.[1])

/** Sends a signal to all that is left of a helper's process group, which has its leader's id. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  tolerateSystemErrors(() => process.kill(-leader, signal))
}

const KILL_TIMEOUT_MS = 2000

/** A helper's first process, which leads its group and its session. */
export interface HelperLeader {
  pid: number
  /** See ProcessStat. */
  start: string | undefined
}

/** Of a child that was not waited for. */
export function readLeader(pid: number): HelperLeader {
  return { pid, start: readProcessStat(pid)?.start }
}

/** Ends every process of a helper, of its session or with its mark. @returns false where the kernel holds one */
export function endAll(leader: HelperLeader, mark: string): Promise<boolean> {
  const until = performance.now() + KILL_TIMEOUT_MS
  const isLeft = createHelperMatcher(leader, mark)
  return retryUntilDefined(() => {
    const left = listProcessIds().filter(isLeft)
    if (left.length === 0) return true
    if (performance.now() > until) return false
    for (const pid of left) withPidfd(pid, (kill) => isLeft(pid) && kill())
    return undefined
  })
}

/** Of processes that still run; a zombie does not. */
function createHelperMatcher({ pid: leader, start }: HelperLeader, mark: string): (pid: number) => boolean {
  return (pid) => {
    const stat = readProcessStat(pid)
    if (stat === undefined) return false
    // A later process of the leader's number has a session of its own: of the helper's none was left.
    const later = readProcessStat(leader)
    const isSession = later === undefined || later.start === start
    if (isSession && (stat.group === leader || stat.session === leader)) return true
    return isStartedByModekeep(
      pid,
      () => true,
      (variable) => variable === `${HELPER_MARK}=${mark}`,
    )
  }
}

export const linuxDaemons: Daemons = {
  find(argument, known) {
    const isServing = createDaemonMatcher((args) => args.split('\0').includes(argument), known)
    for (const pid of known?.map(({ pid }) => pid) ?? listProcessIds()) {
      const state = isServing(pid)
        ? withPidfd(pid, () => (isServing(pid) ? readProcessStat(pid)?.state : undefined))
        : undefined
      if (state !== undefined) return { pid, state }
    }
    return undefined
  },

  // Kubelet's calls for what the kernel mounts alone do not pay for what runs programs.
  answers: async (parent, name, milliseconds, about) =>
    (await import('./responsiveness.ts')).answers(parent, name, milliseconds, about),

  lookUp: async (parent, name, milliseconds, about) =>
    (await import('./responsiveness.ts')).lookUp(parent, name, milliseconds, about),

  below(directory) {
    const isThere = createDirectoryMatcher(directory)
    return listProcessIds().flatMap((pid) => {
      const start = isThere(pid)
        ? withPidfd(pid, () => (isThere(pid) ? readProcessStat(pid)?.start : undefined))
        : undefined
      return start === undefined ? [] : [{ pid, start }]
    })
  },

  kill(directory, known) {
    const isLeft = createDirectoryMatcher(directory, known)
    for (const pid of listProcessIds()) if (isLeft(pid)) withPidfd(pid, (kill) => isLeft(pid) && kill())
  },
}

function createDirectoryMatcher(directory: string, known?: readonly ProcessId[]) {
  return createDaemonMatcher((args) => args.includes(`${directory}/`), known)
}

/** Whether it is another process that modekeep has started with such arguments, and one of these. */
function createDaemonMatcher(
  isWanted: (args: string) => boolean,
  known: readonly ProcessId[] | undefined,
): (pid: number) => boolean {
  const isKnown = (pid: number) =>
    known === undefined || known.some((one) => one.pid === pid && one.start === readProcessStat(pid)?.start)
  return (pid) =>
    pid !== process.pid &&
    isKnown(pid) &&
    isStartedByModekeep(pid, isWanted, (name) => name.startsWith(`${HELPER_MARK}=`))
}
