import { formatError } from '../src/errors/refusal.ts'
import { isFlexVolumeVerb } from '../src/frontends/flexvolume/protocol.ts'
import {
  CSI_WORKER_VERB,
  ISOLATED_WORKER_VERB,
  NRI_WORKER_VERB,
  RESIDENT_WORKER_VERB,
} from '../src/kernel/worker-process.ts'
import { STDERR, writeWholeText } from './streams.ts'

const STDIN = 0

/** Entries of worker processes: a server starts this executable with the name as its first argument. */
const WORKER_ENTRY_POINTS: ReadonlyMap<string | undefined, () => Promise<void>> = new Map([
  [
    CSI_WORKER_VERB,
    async () => (await import('./csi-worker.ts').catch(exitAfterLoadError)).serveCsiWorkerTasks(process.env),
  ],
  [
    NRI_WORKER_VERB,
    async () => (await import('./nri-worker.ts').catch(exitAfterLoadError)).serveNriWorkerTasks(process.env),
  ],
  [RESIDENT_WORKER_VERB, async () => (await import('./kubelet-call.ts')).serveResidentCalls(process.env)],
])

/** The only reader of argv. Each kind of process loads a script of its own, so that a server keeps no code of kubelet's calls. */
async function main(): Promise<void> {
  const argv = process.argv.slice(2)
  if (argv[0] === ISOLATED_WORKER_VERB && (await import('./isolated-worker.ts')).runIsolatedWorker(argv[1])) return
  const work = WORKER_ENTRY_POINTS.get(argv[0])
  if (work !== undefined && !process.getBuiltinModule('node:tty').isatty(STDIN)) return runWorkerAndExit(work)
  // Any other word is an operator's verb, even without a terminal: a script that mistypes a verb must not read success.
  if (!isFlexVolumeVerb(argv[0])) return runOperatorVerbAndExit(argv)
  return (await import('./kubelet-call.ts')).runKubeletCallAndExit(argv)
}

/** Runs tasks for the server that has started this process with a pipe. */
async function runWorkerAndExit(work: () => Promise<void>): Promise<never> {
  await work()
  process.exit(0)
}

/** Runs an operator's verb. Its code is imported only here, so that kubelet's calls do not load it. */
async function runOperatorVerbAndExit(argv: string[]): Promise<never> {
  const { runOperatorVerb } = await import('./operator.ts').catch(exitAfterLoadError)
  process.exit(await runOperatorVerb(argv, process.env))
}

/** Prints a load error. Node would print the whole bundle as the line that threw. */
function exitAfterLoadError(error: unknown): never {
  writeWholeText(`error: modekeep cannot start: ${formatError(error)}\n`, STDERR)
  process.exit(1)
}

void main()
