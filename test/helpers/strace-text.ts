const BELOW_A_HANDLE = /"\/proc\/self\/fd\/(\d+)/g
const OPENED = /= (\d+)<(\/[^>]*)>$/

/** One system call as `strace -f -y` wrote it. */
export interface TracedCall {
  thread: string
  name: string
  /** Its how-many-th call of that name this is in its thread, from 1: what strace's `when` counts. */
  when: number
  text: string
  failed: boolean
  /** It is the one that was made to fail: strace says so where the call ends, which may be lines later. */
  injected: boolean
}

/** Where a process is killed, and for which call: strace cannot inject into a call whose name it does not know. */
export interface KillPoint {
  name: string
  when: number
  text: string
}

/**
 * Parses a trace. What was cut in two by another thread counts where it began. A path below a handle,
 * "/proc/self/fd/22/name", is replaced by the path itself where the call that opened the handle was traced too.
 */
export function parseTrace(trace: string): TracedCall[] {
  const openedBy = new Map<string, string>()
  const counts = new Map<string, number>()
  const calls: TracedCall[] = []
  const unfinished = new Map<string, TracedCall>()
  for (const line of trace.split('\n')) {
    const [, thread = '', written = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const text = written.replace(BELOW_A_HANDLE, (whole, handle) => {
      const path = openedBy.get(`${thread} ${handle}`) ?? openedBy.get(handle)
      return path === undefined ? whole : `"${path}`
    })
    const [, handle, path] = OPENED.exec(text) ?? []
    if (handle !== undefined && path !== undefined) {
      openedBy.set(`${thread} ${handle}`, path)
      openedBy.set(handle, path)
    }
    const failed = / = -1 E[A-Z]+ /.test(text)
    const injected = text.endsWith('(INJECTED)')
    const begun = unfinished.get(thread)
    if (begun && text.startsWith('<... ')) Object.assign(begun, { failed, injected })
    const name = /^(\w+)\(/.exec(text)?.[1]
    if (name === undefined) continue
    const when = (counts.get(`${thread} ${name}`) ?? 0) + 1
    counts.set(`${thread} ${name}`, when)
    const call = { thread, name, when, text, failed, injected }
    calls.push(call)
    if (text.endsWith('<unfinished ...>')) unfinished.set(thread, call)
  }
  return calls
}

// fchmodat2(2) to a strace older than 6.6.
const UNNAMED = /^syscall_0x/
const OF_AN_INODE = /^(fchownat|fchmodat2|syscall_0x1c4|(set|remove)xattr(at)?|f(set|remove)xattr)$/
const OF_A_MOUNT = /^(move_mount|umount2)$/
const OF_A_NAME = /^(mkdir|rmdir|unlink|rename|link|symlink)(at2?)?$/
const OF_CONTENT = /^(p?writev?2?|pwrite64|ftruncate|fallocate)$/
/** What changes nothing that outlives the process, or nothing that a process which only dies could lose. */
const PASSING = /^(f(data)?sync|flock|open_tree|mount_setattr|fsopen|fsconfig|fsmount|fchown)$/

/** Whether a call changes something that outlives its process: inodes, mounts, modekeep's files below `top`, its answer. */
export function isPersistent({ name, text, failed }: TracedCall, top: string): boolean {
  if (failed) return false
  if (OF_AN_INODE.test(name) || OF_A_MOUNT.test(name)) return true
  if (name === 'openat') return text.includes('O_CREAT') && text.includes(`"${top}/`)
  if (OF_A_NAME.test(name)) return text.includes(`"${top}/`)
  return OF_CONTENT.test(name) && (text.includes(`<${top}/`) || text.includes('{\\"status\\"'))
}

export function isPassing({ name, failed }: TracedCall): boolean {
  return !failed && PASSING.test(name)
}

/** Calls that change nothing, as many in each run: one of them is killed in place of a call of which there are more or fewer. */
const STANDS_IN = /^(fcntl|flock|fstat|lstat|stat|statx)$/

/**
 * Where to kill so that all calls before the chosen one are made and it is not. For a call without a name that is at a
 * statx or getxattr that comes after the last change of its thread; for one whose number cannot be told, at any that changes
 * nothing, and nowhere where none comes between.
 * @param unsteady names of calls of which there are more or less in each run
 */
export function listKillPoints(
  calls: readonly TracedCall[],
  chosen: (call: TracedCall) => boolean,
  top: string,
  unsteady?: RegExp,
) {
  return calls.flatMap((call, index): KillPoint[] => {
    if (!chosen(call)) return []
    const isUnnamed = UNNAMED.test(call.name)
    if (!isUnnamed && !unsteady?.test(call.name)) return [call]
    const standsIn = isUnnamed ? /^(statx|getxattr)$/ : STANDS_IN
    for (let before = index - 1; before >= 0; before--) {
      const other = calls[before]
      if (other?.thread !== call.thread) continue
      if (standsIn.test(other.name)) return [{ ...other, text: call.text }]
      if (isPersistent(other, top)) break
    }
    if (!isUnnamed) return []
    throw new Error(`nowhere to kill before ${call.text}: use a strace that knows the call (6.6)`)
  })
}

/**
 * Of successive writes to one file only the first and the last: SQLite reads nothing of a transaction in its log before
 * the last of its pages, and repeats a checkpoint from the log whole.
 */
export function endsOfWrites(calls: readonly TracedCall[]): (call: TracedCall) => boolean {
  const inner = new Set<TracedCall>()
  const file = (call?: TracedCall) => (call && /^pwrite64\(\d+<[^>]*>/.exec(call.text)?.[0]) ?? ''
  for (const [index, call] of calls.entries()) {
    const here = file(call)
    if (here !== '' && here === file(calls[index - 1]) && here === file(calls[index + 1])) inner.add(call)
  }
  return (call) => !inner.has(call)
}
