import type { Worker } from 'node:worker_threads'
import type { Handle, Inodes } from '../host/host.ts'
import type { Journal } from './journal/journal.ts'
import { Progress, type ProgressListener } from './progress.ts'
import { frameOf } from './walk/frame.ts'
import type { PackedFrames } from './walk/frames.ts'
import { LocalLedger, type Names } from './walk/ledger.ts'
import { batchSize } from './walk/pipeline.ts'
import { mergeReports, type WalkReport } from './walk/report.ts'
import { type TaskSpec, taskOf } from './walk/task-spec.ts'
import { type Boundary, SELF, traverse } from './walk/traverse.ts'
import { Walk } from './walk/walk.ts'
import type { WalkSettings } from './walk/walk-settings.ts'
import type { WorkerData } from './workers/messages.ts'

/** What a walk may use beside the thread it is called in. */
export interface WalkOptions {
  /** Threads for a large tree: how many, and how one is started that runs `runWorker`. */
  workerPool?: { size: number; spawn(data: WorkerData): Worker; from?: number }
  progress?: ProgressListener
}

/** Below this many inodes threads take longer to start than they save. */
const WORKERS_FROM = 4000

/** Inodes after which a thread that walks alone lets others have their turn: signals, timers. */
const YIELDS_AFTER = 4000

const NONE = new Uint8Array()

/** Walks a tree for a task, its root last. @throws {Refusal} {SystemError} what stopped it; what was made is recorded */
export async function walkTree(
  inodes: Inodes,
  root: Handle,
  spec: TaskSpec,
  journal: Journal,
  names: Names,
  { workerPool, progress }: WalkOptions,
): Promise<WalkReport> {
  const top = inodes.openDirectory(root, SELF)
  const stat = inodes.stat(top)
  const inside: Boundary = { mountId: stat.mountId, device: stat.device }
  const ledger = new LocalLedger(journal, names)
  const shown = new Progress(progress)
  const stopAfter = workerPool ? (workerPool.from ?? WORKERS_FROM) : YIELDS_AFTER
  const settings: WalkSettings = {
    inside,
    stopAfter,
    batchSize: batchSize(inodes.handleLimit(), 1),
    onBatch: () => shown.tell(walk.report),
  }
  const walk: Walk = new Walk(inodes, taskOf(spec), ledger, settings)
  const reports = [walk.report]
  try {
    const first = frameOf(inodes.duplicate(top), stat, NONE, NONE)
    let rest = traverse(inodes, [first], inside, walk)
    if (rest && workerPool) {
      const part = rest
      walk.flush()
      const { WorkerPool } = await import('./workers/pool.ts')
      const drop = (part: PackedFrames) => {
        for (const { handle } of part) if (handle !== undefined) inodes.close(handle)
      }
      const started = (shared: Int32Array) => shown.watch(shared, workerPool.size, walk.report)
      const report = await new WorkerPool({
        ...workerPool,
        spec,
        inside,
        first: part,
        journal,
        ledger,
        drop,
        started,
      }).run()
      if (report) reports.push(report)
      rest = report ? undefined : part
    }
    for (; rest; rest = traverse(inodes, rest, inside, walk)) {
      await new Promise((resolve) => setImmediate(resolve))
      settings.stopAfter = walk.report.visited + YIELDS_AFTER
    }
    walk.directory(top, NONE)
    walk.flush()
    journal.confirm()
  } finally {
    shown.end()
    walk.close()
    inodes.close(top)
  }
  return mergeReports(reports)
}
