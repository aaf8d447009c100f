import { parseCall } from '../src/protocol/call.ts'
import { failureReply, type Reply, replyLine } from '../src/protocol/reply.ts'
import { closeStderr, writeAll } from './streams.ts'

/** The only reader of argv and environment, the only writer of stdout. Kubelet takes any exit but 0 as a reason to log argv. */
async function main(): Promise<void> {
  closeStderr()
  process.on('uncaughtException', (error) => answer(failureReply(error)))
  try {
    answer(await replyTo(process.argv.slice(2)))
  } catch (error) {
    answer(failureReply(error))
  }
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
