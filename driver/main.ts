import { formatError } from '../src/errors/refusal.ts'
import {
  createFailureReply,
  createInitReply,
  type FlexVolumeReply,
  formatReplyLine,
  isFlexVolumeVerb,
  parseFlexVolumeCall,
} from '../src/frontends/flexvolume/protocol.ts'
import { CSI_WORKER_VERB, ISOLATED_WORKER_VERB, NRI_WORKER_VERB } from '../src/kernel/worker-process.ts'
import { closeStderr, writeAll } from './streams.ts'

const STDIN = 0

/** Entries of worker processes: a server starts this executable with the name as its first argument. */
const WORKER_ENTRIES: ReadonlyMap<string | undefined, () => Promise<void>> = new Map([
  [CSI_WORKER_VERB, async () => (await import('./csi-worker.ts').catch(exitUnloadable)).workForServer(process.env)],
  [NRI_WORKER_VERB, async () => (await import('./nri-worker.ts').catch(exitUnloadable)).workForPlugin(process.env)],
])

/** The only reader of argv, and the only writer of replies to kubelet. Kubelet logs argv after any exit status but 0. */
async function main(): Promise<void> {
  const argv = process.argv.slice(2)
  if (argv[0] === ISOLATED_WORKER_VERB && (await import('./isolated-worker.ts')).runIsolatedWorker(argv[1])) return
  const work = WORKER_ENTRIES.get(argv[0])
  if (work !== undefined && !process.getBuiltinModule('node:tty').isatty(STDIN)) return runWorker(work)
  // Any other word is an operator's verb, even without a terminal: a script that mistypes a verb must not read success.
  if (!isFlexVolumeVerb(argv[0])) return operateByHand(argv)
  closeStderr()
  process.on('uncaughtException', (error) => sendReply(createFailureReply(error)))
  try {
    sendReply(await createReply(argv))
  } catch (error) {
    sendReply(createFailureReply(error))
  }
}

/** Runs tasks for the server that has started this process with a pipe. */
async function runWorker(work: () => Promise<void>): Promise<never> {
  await work()
  process.exit(0)
}

/** Runs an operator's verb. Its code is imported only here, so that kubelet's calls do not load it. */
async function operateByHand(argv: string[]): Promise<never> {
  const { operateHere } = await import('./operator.ts').catch(exitUnloadable)
  process.exit(await operateHere(argv, process.env))
}

/** Prints a load error. Node would print the whole bundle as the line that threw. */
function exitUnloadable(error: unknown): never {
  writeAll(`error: modekeep cannot start: ${formatError(error)}\n`, 2)
  process.exit(1)
}

async function createReply(argv: string[]): Promise<FlexVolumeReply> {
  const call = parseFlexVolumeCall(argv)
  if (call.verb === 'other')
    return { status: 'Not supported', message: `modekeep has no verb ${JSON.stringify(call.name).slice(0, 80)}` }
  if (call.verb === 'init')
    return createInitReply(await (await import('../src/config/read-config.ts')).readConfig(process.env))
  return (await import('./volume-call.ts')).volumeCall(call, process.env)
}

function sendReply(reply: FlexVolumeReply): never {
  writeAll(formatReplyLine(reply))
  process.exit(0)
}

void main()
