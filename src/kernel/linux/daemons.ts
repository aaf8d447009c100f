import { HELPER_MARK_VARIABLE } from '../helpers.ts'
import type { DaemonOperations, ProcessId } from '../host.ts'
import { retryUntilDefined } from '../waiting.ts'
import {
  hasOwnUserIds,
  hasProcessRaisedRights,
  listProcessIds,
  readProcessStat,
  readProcText,
  withPidfd,
} from './processes.ts'

/**
 * Checks whether modekeep has started a process: it has modekeep's user ids, did not get them from a set-uid program,
 * and has the mark. Any user may choose arguments and variables. They are not read of other users' processes, because
 * the read could wait for files of those users.
 */
function isProcessStartedByModekeep(
  pid: number,
  isWanted: (args: string) => boolean,
  isMark: (variable: string) => boolean,
): boolean {
  return (
    hasOwnUserIds(pid) &&
    isWanted(readProcText(pid, 'cmdline')) &&
    readProcText(pid, 'environ').split('\0').some(isMark) &&
    !hasProcessRaisedRights(pid)
  )
}

const HELPER_KILL_TIMEOUT_MS = 2000

/** A helper's first process, which leads its group and its session. */
export interface HelperLeader {
  pid: number
  /** As in ProcessStat. */
  start: string | undefined
}

/** The pid must be of a child that was not waited for, so that it is not reused. */
export function readHelperLeader(pid: number): HelperLeader {
  return { pid, start: readProcessStat(pid)?.start }
}

/** Ends every process of a helper's session or with its mark. @returns false if the kernel blocks the end of one */
export function killHelperProcesses(leader: HelperLeader, mark: string): Promise<boolean> {
  const deadline = performance.now() + HELPER_KILL_TIMEOUT_MS
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
    return isProcessStartedByModekeep(
      pid,
      () => true,
      (variable) => variable === `${HELPER_MARK_VARIABLE}=${mark}`,
    )
  }
}

export const linuxDaemons: DaemonOperations = {
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

  answers: async (parent, name, milliseconds, key) =>
    (await linuxDaemons.lookUp(parent, name, milliseconds, key)) !== undefined,

  // Loaded on demand: calls for mounts of the kernel need no code that runs programs.
  lookUp: async (parent, name, milliseconds, key) =>
    (await import('./lookups.ts')).lookUpName(parent, name, milliseconds, key),

  below(directory) {
    const isMatch = createDaemonDirectoryMatcher(directory)
    return listProcessIds().flatMap((pid) => {
      const start = isMatch(pid)
        ? withPidfd(pid, () => (isMatch(pid) ? readProcessStat(pid)?.start : undefined))
        : undefined
      return start === undefined ? [] : [{ pid, start }]
    })
  },

  kill(directory, known) {
    const isMatch = createDaemonDirectoryMatcher(directory, known)
    for (const pid of listProcessIds()) if (isMatch(pid)) withPidfd(pid, (kill) => isMatch(pid) && kill())
  },
}

function createDaemonDirectoryMatcher(directory: string, known?: readonly ProcessId[]) {
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
    isProcessStartedByModekeep(pid, isWanted, (name) => name.startsWith(`${HELPER_MARK_VARIABLE}=`))
}
