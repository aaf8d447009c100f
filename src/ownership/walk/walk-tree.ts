import type { Handle, Inodes } from '../../host/host.ts'
import { SELF } from './entry.ts'
import { type PackedFrames, wholeTree } from './frames.ts'
import type { SurveyLedger } from './ledger.ts'
import { batchSize, type Observer } from './pipeline.ts'
import { Progress, type ProgressListener } from './progress.ts'
import { mergeReports, type WalkCounts, type WalkReport } from './report.ts'
import { type Boundary, traverse } from './traverse.ts'
import { type TaskSpec, Walk, type WalkSettings } from './walk.ts'

/** Other threads, for a large tree. */
export interface Others {
  /** Below this many inodes they take longer to start than they save. */
  from: number
  /**
   * Has them walk the rest of the tree.
   * @param watch takes the way to look at their counts meanwhile
   * @returns undefined where none could be started: the rest is then the caller's again
   */
  walk(rest: PackedFrames, inside: Boundary, watch: (counts: () => WalkCounts) => void): Promise<WalkReport | undefined>
}

export interface TreeOptions {
  progress?: ProgressListener | undefined
  observer?: Observer
  others?: Others | undefined
}

/** Inodes after which a thread that walks alone lets others have their turn: signals, timers. */
const YIELDS_AFTER = 4000

/** Walks a tree for a task, its root last. @throws {Refusal} {SystemError} what stopped it; what was made is recorded */
export async function walkTree(
  inodes: Inodes,
  root: Handle,
  spec: TaskSpec,
  ledger: SurveyLedger,
  { progress, observer, others }: TreeOptions,
): Promise<WalkReport> {
  const top = inodes.openDirectory(root, SELF)
  const stat = inodes.stat(top)
  const inside: Boundary = { mountId: stat.mountId, device: stat.device }
  const shown = new Progress(progress)
  const settings: WalkSettings = {
    inside,
    observer,
    stopAfter: others?.from ?? YIELDS_AFTER,
    batchSize: batchSize(inodes.handleLimit(), 1),
    onBatch: () => shown.tell(walk.report),
  }
  const walk: Walk = new Walk(inodes, spec, ledger, settings)
  const reports = [walk.report]
  try {
    let rest = traverse(inodes, wholeTree(inodes, top, stat), inside, walk)
    if (rest && others) {
      walk.flush()
      const { visited, changed } = walk.report
      const report = await others.walk(rest, inside, (read) =>
        shown.watch(() => {
          const counts = read()
          return { visited: visited + counts.visited, changed: changed + counts.changed }
        }),
      )
      if (report) {
        reports.push(report)
        rest = undefined
      }
    }
    for (; rest; rest = traverse(inodes, rest, inside, walk)) {
      shown.tell(walk.report)
      await new Promise((resolve) => setImmediate(resolve))
      settings.stopAfter = walk.report.visited + YIELDS_AFTER
    }
    walk.directory(top, new Uint8Array())
    walk.flush()
    for (const path of ledger.names.outside()) walk.left('linked outside the volume', path)
  } finally {
    shown.end()
    walk.close()
    inodes.close(top)
  }
  return mergeReports(reports)
}
