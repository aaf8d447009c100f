import { setFlagsFromString } from 'node:v8'

export const IDLE_CHECK_INTERVAL_MS = 5000
/** A process that used less processor time between two checks is idle. */
const IDLE_PROCESSOR_MS = 20
/** A release takes some 30 ms of processor time, so between two of them the process must have used much more. */
const MIN_PROCESSOR_MS_BETWEEN_RELEASES = 500

/**
 * Returns memory of the start and of earlier work to the node when the process is idle. An idle process allocates nothing, so V8
 * itself would collect nothing. Compiled code is kept, so the next work is as fast as the last.
 * @param readProcessorMs returns the processor time that this process has used
 */
export function releaseMemoryWhenIdle(readProcessorMs = readOwnProcessorMs, release = collectAllGarbage): void {
  let before = readProcessorMs()
  let nextReleaseFrom = 0
  setInterval(() => {
    const now = readProcessorMs()
    const isIdle = now - before < IDLE_PROCESSOR_MS
    before = now
    if (!isIdle || now < nextReleaseFrom) return
    nextReleaseFrom = now + MIN_PROCESSOR_MS_BETWEEN_RELEASES
    release()
  }, IDLE_CHECK_INTERVAL_MS).unref()
}

function readOwnProcessorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function collectAllGarbage(): void {
  // V8 gives `gc` only to contexts that are created after the flag is set.
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = process.getBuiltinModule('node:vm').runInNewContext('gc')
  // Asynchronously, so that the context itself is collected too.
  void collect({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
