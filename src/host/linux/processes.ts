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

/** Fields of proc_pid_stat(5) of a running process. */
interface ProcessStat {
  /** One letter: R, S, D, T (stopped), … */
  state: string
  group: number
  session: number
  /** Start time in clock ticks after the boot. It distinguishes the process from a later one with the same pid. */
  start: string
}

/** Returns undefined for a process that has ended, even if its parent has not waited for it. */
export function readProcessStat(pid: number): ProcessStat | undefined {
  // The fields follow the name, which may contain parentheses.
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

/** Arguments and variables each end with a NUL. Returns '' for a process that has ended, or is about to. */
function readProcText(pid: number, file: ProcFile): string {
  // Both are read from the process's memory, which may be mapped from a file of an unresponsive daemon.
  if ((file === 'cmdline' || file === 'environ') && !sharesMounts(pid)) return ''
  return tolerateSystemErrors(() => readText(`/proc/${pid}/${file}`)) ?? ''
}

/**
 * Checks whether a process is in this mount namespace. All processes that modekeep starts are, and processes of pods
 * are not.
 */
function sharesMounts(pid: number): boolean {
  const readNamespace = (target: number | 'self') => tolerateSystemErrors(() => readlinkSync(`/proc/${target}/ns/mnt`))
  return readNamespace(pid) === readNamespace('self')
}

const pidfdOpen = systemCall('pidfd_open')
const pidfdSendSignal = systemCall('pidfd_send_signal')

/**
 * Inspects a process through a pidfd, so all reads are of one process, and `kill` reaches no other process even if the
 * pid is reused.
 * @returns the result of `look`, or undefined if the process has ended
 */
function withPidfd<T>(pid: number, inspect: (kill: () => void) => T): T | undefined {
  const handle = pidfdOpen(pid)
  if (handle < 0) return undefined
  using _ = deferCloseFd(handle)
  const result = inspect(() => void pidfdSendSignal(handle, constants.signals.SIGKILL))
  // Signal 0 only checks for existence. If the process was reaped, the reads may be of another process.
  return pidfdSendSignal(handle, 0) < 0 ? undefined : result
}

/**
 * Checks whether modekeep has started a process: it has modekeep's user ids, did not get them from a set-uid program,
 * and has the mark. Any user may choose arguments and variables. They are not read of other users' processes, because
 * the read could wait for files of those users.
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

/** Checks whether all four user ids of a process are those of this one. Access to /proc/PID proves less. */
function hasOwnUserIds(pid: number): boolean {
  const ownUid = process.geteuid?.()
  const { userIds } = parseProcessStatus(readProcText(pid, 'status'))
  return userIds.length > 0 && userIds.every((uid) => uid === ownUid)
}

// include/uapi/linux/auxvec.h: nonzero only in a program that was given rights that its caller lacks.
const AT_SECURE = 23n

function hasRaisedRights(pid: number): boolean {
  const auxiliary = tolerateSystemErrors(() => readFileSync(`/proc/${pid}/auxv`)) ?? Buffer.alloc(0)
  for (let offset = 0; offset + 16 <= auxiliary.length; offset += 16) {
    if (auxiliary.readBigUInt64LE(offset) === AT_SECURE) return auxiliary.readBigUInt64LE(offset + 8) !== 0n
  }
  return true
}

/**
 * Kills the process of this program that holds a lock, has this word as first argument, and is no child of this
 * process's parent. Only one process may have such children, so the holder's own parent has ended.
 * @param lock the file, by a path without links
 * @returns its pid
 */
export function endAbandoned(lock: string, verb: string): number | undefined {
  const { ino } = tolerateSystemErrors(() => statSync(lock, { bigint: true })) ?? {}
  if (ino === undefined) return undefined
  const isAbandoned = (pid: number) =>
    pid !== process.pid &&
    hasOwnUserIds(pid) &&
    !hasRaisedRights(pid) &&
    hasFirstArgument(pid, verb) &&
    readParentPid(pid) !== process.ppid
  for (const pid of findLockHolders(lock, ino)) {
    const isEnded = withPidfd(pid, (kill) => {
      if (!isAbandoned(pid)) return false
      kill()
      return true
    })
    if (isEnded) return pid
  }
  return undefined
}

const hasFirstArgument = (pid: number, verb: string) => readProcText(pid, 'cmdline').split('\0')[1] === verb

const readParentPid = (pid: number) => Number(/^PPid:\s*(\d+)$/m.exec(readProcText(pid, 'status'))?.[1])

/** Signals the remaining processes of a helper's process group, which has its leader's id. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  tolerateSystemErrors(() => process.kill(-leader, signal))
}

const KILL_TIMEOUT_MS = 2000

/** A helper's first process, which leads its group and its session. */
export interface HelperLeader {
  pid: number
  /** As in ProcessStat. */
  start: string | undefined
}

/** The pid must be of a child that was not waited for, so that it is not reused. */
export function readLeader(pid: number): HelperLeader {
  return { pid, start: readProcessStat(pid)?.start }
}

/** Ends every process of a helper's session or with its mark. @returns false if the kernel blocks the end of one */
export function endAll(leader: HelperLeader, mark: string): Promise<boolean> {
  const deadline = performance.now() + KILL_TIMEOUT_MS
  const isOfHelper = createHelperMatcher(leader, mark)
  return retryUntilDefined(() => {
    const remaining = listProcessIds().filter(isOfHelper)
    if (remaining.length === 0) return true
    if (performance.now() > deadline) return false
    for (const pid of remaining) withPidfd(pid, (kill) => isOfHelper(pid) && kill())
    return undefined
  })
}

/** Matches running processes; a zombie is none. */
function createHelperMatcher({ pid: leader, start }: HelperLeader, mark: string): (pid: number) => boolean {
  return (pid) => {
    const stat = readProcessStat(pid)
    if (stat === undefined) return false
    // If a later process has the leader's pid, it has its own session: no process of the helper's session was left.
    const current = readProcessStat(leader)
    const isNotReused = current === undefined || current.start === start
    if (isNotReused && (stat.group === leader || stat.session === leader)) return true
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

  // Loaded on demand: calls for mounts of the kernel need no code that runs programs.
  answers: async (parent, name, milliseconds, key) =>
    (await import('./responsiveness.ts')).answers(parent, name, milliseconds, key),

  lookUp: async (parent, name, milliseconds, key) =>
    (await import('./responsiveness.ts')).lookUp(parent, name, milliseconds, key),

  below(directory) {
    const isMatch = createDirectoryMatcher(directory)
    return listProcessIds().flatMap((pid) => {
      const start = isMatch(pid)
        ? withPidfd(pid, () => (isMatch(pid) ? readProcessStat(pid)?.start : undefined))
        : undefined
      return start === undefined ? [] : [{ pid, start }]
    })
  },

  kill(directory, known) {
    const isMatch = createDirectoryMatcher(directory, known)
    for (const pid of listProcessIds()) if (isMatch(pid)) withPidfd(pid, (kill) => isMatch(pid) && kill())
  },
}

function createDirectoryMatcher(directory: string, known?: readonly ProcessId[]) {
  return createDaemonMatcher((args) => args.includes(`${directory}/`), known)
}

/** Matches other processes that modekeep started with such arguments, restricted to `known` processes if given. */
function createDaemonMatcher(
  isWanted: (args: string) => boolean,
  known: readonly ProcessId[] | undefined,
): (pid: number) => boolean {
  const isKnown = (pid: number) =>
    known === undefined || known.some((daemon) => daemon.pid === pid && daemon.start === readProcessStat(pid)?.start)
  return (pid) =>
    pid !== process.pid &&
    isKnown(pid) &&
    isStartedByModekeep(pid, isWanted, (name) => name.startsWith(`${HELPER_MARK}=`))
}
