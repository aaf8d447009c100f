import { type FaultPoint, removeDuplicates } from '../helpers/inject.ts'
import type { TracedCall } from '../helpers/strace-text.ts'

/** Memory, threads, time and signals are the runtime's: without them Node, V8 and libc end the process. */
const OF_THE_RUNTIME =
  /^(arch_prctl|brk|capget|clock_\w+|clone3?|epoll_\w+|eventfd2|execve|exit(_group)?|fork|futex|get(e?[ug]id|pid|ppid|tid|rusage|random)|io_uring_\w+|madvise|membarrier|mmap|mprotect|mremap|munmap|nanosleep|pkey_\w+|prctl|prlimit64|restart_syscall|rseq|rt_sig\w+|sched_\w+|set_\w+|sigaltstack|sysinfo|uname|vfork)$/
// It also reads stdin, at any time that has input.
const OF_THE_EVENT_LOOP = /^\w+\((\d+<(anon_inode:\[event|pipe:)|0<socket:)/
// Time zones, and how many processors there are; the addon, which ld.so opens, maps and closes.
const OF_ITS_FILES =
  /\/memfd:modekeep-kernel|\/proc\/(self|\d+)\/cgroup|\/sys\/fs\/cgroup|"\/etc\/localtime"|\/usr(\/share(\/zoneinfo|")|")/
const STDOUT = /^write\(1</
/** Node asks what its standard streams are when they are first used. */
const OF_ITS_STREAMS = /^getsock(name|opt)\([012]</

/** What strace cannot name it cannot inject into. */
const UNNAMED = /^syscall_0x/

/** From the first call that is about the command's own files to its answer: before it the runtime starts, then it ends. */
function itsOwnTime(calls: readonly TracedCall[], first: string): readonly TracedCall[] {
  const start = calls.findIndex(({ name, text }) => name === 'openat' && text.includes(`"${first}"`))
  const end = calls.findLastIndex(({ text }) => STDOUT.test(text))
  if (start < 0 || end < start) throw new Error(`no call opens ${first}, or there is no answer`)
  return calls.slice(start, end + 1)
}

/**
 * Where a call can be killed or made to fail: at all that it asks of the kernel itself. What lies between changes nothing
 * that outlives the process, so that a death there leaves what a death at the next of them does.
 */
export function ownCalls(calls: readonly TracedCall[], first: string): FaultPoint[] {
  return selectOwnCalls(calls, itsOwnTime(calls, first))
}

function selectOwnCalls(all: readonly TracedCall[], part: readonly TracedCall[]): FaultPoint[] {
  const struck = new Set(all.filter(isFirstOf(all)))
  return removeDuplicates(part.filter((call) => struck.has(call) && !UNNAMED.test(call.name) && isItsOwn(call)))
}

/**
 * Where a resident worker can be killed, or its calls made to fail: from the loader's connection until it is closed. A failing
 * close would leave it open under strace; the kernel closes it also then.
 */
export function residentCalls(calls: readonly TracedCall[]): FaultPoint[] {
  const start = calls.findIndex(({ name }) => name === 'accept4')
  const connection = /= (\d+<socket:\[\d+\]>)$/.exec(calls[start]?.text ?? '')?.[1]
  if (connection === undefined) throw new Error('the worker accepts no connection')
  const end = calls.findLastIndex(({ text }) => text.startsWith(`close(${connection}`))
  if (end < start) throw new Error('the worker does not close the connection')
  return selectOwnCalls(calls, calls.slice(start, end))
}

/** strace counts calls in each thread and strikes the thread that comes first: for a later one that may be ld.so itself. */
function isFirstOf(calls: readonly TracedCall[]): (call: TracedCall) => boolean {
  const place = ({ name, when }: TracedCall) => `${name} ${when}`
  const first = new Map<string, TracedCall>()
  for (const call of calls) if (!first.has(place(call))) first.set(place(call), call)
  return (call) => first.get(place(call)) === call
}

/** Whether a call is modekeep's and not its runtime's. */
export function isItsOwn({ name, text }: TracedCall): boolean {
  if (STDOUT.test(text)) return true
  if (OF_THE_EVENT_LOOP.test(text) || OF_ITS_FILES.test(text) || OF_ITS_STREAMS.test(text)) return false
  // SQLite maps its index of the log; modekeep makes a user namespace by clone(2).
  if (name === 'mmap') return /, \d+<\/.*\.db-shm>/.test(text)
  if (name === 'clone') return text.includes('CLONE_NEWUSER')
  return !OF_THE_RUNTIME.test(name)
}

/** At its exit Node looks at its standard streams, and ends itself by a signal where it cannot. */
export function isNodesEnd({ text, failed }: TracedCall): boolean {
  return failed && /^(fcntl|fstat)\([012]</.test(text)
}
