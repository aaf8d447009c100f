import {
  createFailureReply,
  createInitReply,
  type FlexVolumeReply,
  formatReplyLine,
  parseFlexVolumeCall,
} from '../src/frontends/flexvolume/protocol.ts'
import { discardStderr, writeWholeText } from './streams.ts'

/** Answers kubelet's call. Kubelet logs argv after any exit status but 0. */
export async function runKubeletCallAndExit(argv: string[]): Promise<never> {
  discardStderr()
  process.on('uncaughtException', (error) => sendReplyAndExit(createFailureReply(error)))
  // Node would end with status 0 and no reply if the call waited for something that never comes.
  process.on('beforeExit', () => sendReplyAndExit(createFailureReply(new Error('the call waits for nothing any more'))))
  try {
    return sendReplyAndExit(await createKubeletReply(argv))
  } catch (error) {
    return sendReplyAndExit(createFailureReply(error))
  }
}

/** Answers calls of the loader, with the code of this script. */
export async function serveResidentCalls(env: NodeJS.ProcessEnv): Promise<void> {
  return (await import('./resident-worker.ts')).serveResidentCalls(env)
}

async function createKubeletReply(argv: string[]): Promise<FlexVolumeReply> {
  const call = parseFlexVolumeCall(argv)
  if (call.verb === 'other')
    return { status: 'Not supported', message: `modekeep has no verb ${JSON.stringify(call.name).slice(0, 80)}` }
  if (call.verb === 'init')
    return createInitReply(await (await import('../src/config/read-config.ts')).readConfig(process.env))
  return (await import('./volume-call.ts')).answerVolumeCallOnNode(call, process.env)
}

function sendReplyAndExit(reply: FlexVolumeReply): never {
  writeWholeText(formatReplyLine(reply))
  process.exit(0)
}
