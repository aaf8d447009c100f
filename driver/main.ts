import { parseCall } from '../src/flexvolume/call.ts'
import { failureReply, type Reply, replyLine } from '../src/flexvolume/reply.ts'
import { closeStderr, writeAll } from './streams.ts'

/** Verbs of people: none of them is, or has ever been, one that kubelet calls. */
const BY_HAND = new Set(
  `plan apply restore status heal doctor logs gc install uninstall device-plugin completion
   help --help -h version --version`.split(/\s+/),
)

/** The only reader of argv and environment, the only writer of stdout. Kubelet takes any exit but 0 as a reason to log argv. */
async function main(): Promise<void> {
  const argv = process.argv.slice(2)
  if (BY_HAND.has(argv[0] ?? '') || isMistyped(argv)) return operateByHand(argv)
  closeStderr()
  process.on('uncaughtException', (error) => answer(failureReply(error)))
  try {
    answer(await replyTo(argv))
  } catch (error) {
    answer(failureReply(error))
  }
}

/** Kubelet reads answers from a pipe: at a terminal a word that nobody knows is a person's. */
function isMistyped([verb = '']: readonly string[]): boolean {
  const isKubelets = ['init', 'mount', 'unmount'].includes(verb)
  return !isKubelets && process.getBuiltinModule('node:tty').isatty(1)
}

/** Imported here alone: kubelet's calls do not load it. */
async function operateByHand(argv: string[]): Promise<never> {
  process.exit(await (await import('./operator.ts')).operateHere(argv, process.env))
}

async function replyTo(argv: string[]): Promise<Reply> {
  const call = parseCall(argv)
  if (call.verb === 'other')
    return { status: 'Not supported', message: `modekeep has no verb ${JSON.stringify(call.name).slice(0, 80)}` }
  if (call.verb === 'init') return (await import('./init.ts')).init(process.env)
  return (await import('./volume-call.ts')).volumeCall(call, process.env)
}

function answer(reply: Reply): never {
  writeAll(replyLine(reply))
  process.exit(0)
}

void main()
