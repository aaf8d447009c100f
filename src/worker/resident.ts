import { computeLongestPauseMs, ResponseTimer } from '../kernel/waiting.ts'
import type { StartWorker, WorkerProcess } from '../kernel/worker-process.ts'

/** Pause before a worker that ended is replaced. It grows with workers that end soon. */
const PAUSE_BETWEEN_WORKERS = { firstMs: 1000, mostMs: 60_000 }
/** A worker that lived for so long did not fail to start. */
const LASTING_AFTER_MS = 60_000

/**
 * Keeps one worker that gets its tasks from others, until the result is disposed of. A worker that reports nothing for too long
 * during a task is killed. It is replaced once it has ended.
 */
export function keepResidentWorker(startWorker: StartWorker<never, null>, patienceMs: number): Disposable {
  let isClosed = false
  let failures = 0
  let worker: WorkerProcess<never> | undefined
  const start = () => {
    if (isClosed) return
    const startedAt = performance.now()
    let timer: ResponseTimer | undefined
    const started = startWorker({
      onReport(report) {
        if ('outcome' in report) {
          timer?.stop()
          timer = undefined
          return
        }
        timer ??= new ResponseTimer(patienceMs, () => started.kill())
        timer.reset('patienceMs' in report ? report.patienceMs : undefined)
      },
      onExit() {
        timer?.stop()
        failures = performance.now() - startedAt < LASTING_AFTER_MS ? failures + 1 : 1
        setTimeout(start, computeLongestPauseMs(PAUSE_BETWEEN_WORKERS, failures)).unref()
      },
    })
    worker = started
  }
  start()
  return {
    [Symbol.dispose]() {
      isClosed = true
      worker?.close()
    },
  }
}
