import { constants, setPriority } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import type { Worker } from 'node:worker_threads'
import about from '../package.json' with { type: 'json' }
import { releaseMemoryWhenIdle } from './idle-memory.ts'

export const MODEKEEP_VERSION: string = about.version

/** Defined by the build. */
declare const CARRIED_GLIBC_VERSION: string | undefined

/** Version of the C library that the executable carries; undefined for the sources, which run with the node's. */
export const GLIBC_VERSION = typeof CARRIED_GLIBC_VERSION === 'undefined' ? undefined : CARRIED_GLIBC_VERSION

const TERMINATION_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Returns a signal that SIGINT or SIGTERM aborts, for a server that then ends by itself. */
export function createTerminationSignal(): AbortSignal {
  const controller = new AbortController()
  for (const signal of TERMINATION_SIGNALS) process.on(signal, () => controller.abort())
  return controller.signal
}

/** Calls `report` before SIGINT or SIGTERM ends the process, until it is disposed of. */
export function callBeforeTermination(report: () => void): Disposable {
  const listener = (signal: NodeJS.Signals) => {
    report()
    process.off(signal, listener)
    process.kill(process.pid, signal)
  }
  for (const signal of TERMINATION_SIGNALS) process.on(signal, listener)
  return {
    [Symbol.dispose]() {
      for (const signal of TERMINATION_SIGNALS) process.off(signal, listener)
    },
  }
}

/**
 * Keeps the heap of a long-running process small. V8's two semi-spaces stay at their initial 1 MiB: over many tasks they would
 * grow to 16 MiB each, though each task needs little. V8 reads the flag at each growth.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  releaseMemoryWhenIdle()
}

const { PRIORITY_HIGH, PRIORITY_ABOVE_NORMAL } = constants.priority

/**
 * Lets the thread that answers the runtime run before others while the node's processors are busy. Nice values are per thread
 * on Linux, and threads and processes inherit them (setpriority(2)).
 */
export const raiseThreadPriority = () => trySetThreadPriority(PRIORITY_HIGH)

/** Gives a worker a lower priority than the answering thread, but above normal: container creation waits for the worker too. */
export const setWorkerPriority = () => trySetThreadPriority(PRIORITY_ABOVE_NORMAL)

function trySetThreadPriority(priority: number): void {
  try {
    setPriority(0, priority)
  } catch {
    // Raising a priority needs CAP_SYS_NICE; all threads then keep the same one.
  }
}

/** Entries of threads: files next to this one, each an asset of the executable. */
export const THREAD_ENTRY_NAMES = ['mount-watch', 'node-reader'] as const

export function formatThreadAssetName(thread: (typeof THREAD_ENTRY_NAMES)[number]): string {
  return `${thread}.cjs`
}

/** Starts a thread of this process, from the executable or from the sources. */
export function startThread(thread: (typeof THREAD_ENTRY_NAMES)[number], workerData: unknown): Worker {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const sea = process.getBuiltinModule('node:sea')
  // The module that opens a handle closes it, so Node must not track handles: it would print warnings.
  const options = { workerData, trackUnmanagedFds: false }
  if (sea.isSea()) return new Worker(sea.getAsset(formatThreadAssetName(thread), 'utf8'), { ...options, eval: true })
  return new Worker(new URL(`./${thread}.ts`, import.meta.url), options)
}
