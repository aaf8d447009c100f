import type { Worker, WorkerOptions } from 'node:worker_threads'

/** Entries of threads: files next to this one, each an asset of the executable. */
export const THREADS = ['mount-watch', 'node-reader'] as const

export function formatAssetName(thread: (typeof THREADS)[number]): string {
  return `${thread}.cjs`
}

/** Starts a thread of this process, from the executable or from the sources. */
export function startThread(
  thread: (typeof THREADS)[number],
  workerData: unknown,
  options: WorkerOptions = {},
): Worker {
  const { Worker } = process.getBuiltinModule('node:worker_threads')
  const sea = process.getBuiltinModule('node:sea')
  // The module that opens a handle closes it, so Node must not track handles: it would print warnings.
  const all = { ...options, workerData, trackUnmanagedFds: false }
  if (sea.isSea()) return new Worker(sea.getAsset(formatAssetName(thread), 'utf8'), { ...all, eval: true })
  return new Worker(new URL(`./${thread}.ts`, import.meta.url), all)
}
