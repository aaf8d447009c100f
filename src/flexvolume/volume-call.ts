import type { CallLog } from '../log/call-log.ts'
import { mount } from '../mount/mount.ts'
import { Refusal } from '../refusal/refusal.ts'
import { readSecrets, SECRET_PREFIX } from '../request/json-options.ts'
import { readRequest } from '../request/request.ts'
import { sourceText } from '../request/source.ts'
import type { Session } from '../store/session.ts'
import { kinds } from '../volume/index.ts'
import type { Call } from './call.ts'
import { failureReply, type Reply } from './reply.ts'

export type VolumeCall = Extract<Call, { verb: 'mount' | 'unmount' }>
type MountCall = Extract<Call, { verb: 'mount' }>

/** What the process gives a call; the rest of its session comes from the call itself. */
export interface Process extends Pick<Session, 'host' | 'config'> {
  log: CallLog
  /** What is wrong with the node's configuration: a mount is refused then, an unmount is not. */
  configFaults: readonly string[]
  /** A program that gets secrets leaves no core. */
  forbidCoreDumps(): void
}

/** Runs `mount` or `unmount` and logs it: one line, and one for each warning. Never throws. */
export async function answerVolumeCall(call: VolumeCall, process: Process): Promise<Reply> {
  const { host, config, log, configFaults } = process
  for (const fault of configFaults) log.warn(fault)
  const session: Session = {
    host,
    config,
    // Decoded for the kinds that use them.
    get secrets() {
      return call.verb === 'mount' ? readSecrets(call.options) : new Map()
    },
    progress: (counts) => log.progress(counts),
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
  }
  try {
    const message =
      call.verb === 'mount'
        ? await mountAs(session, call, process)
        : await (await import('../mount/unmount.ts')).unmount(session, call.directory)
    log.end('Success')
    return message ? { status: 'Success', message } : { status: 'Success' }
  } catch (error) {
    log.end('Failure', error)
    return failureReply(error)
  }
}

/** @returns what modekeep chose where the pod's author left it the choice */
async function mountAs(session: Session, call: MountCall, process: Process): Promise<string | undefined> {
  if (process.configFaults.length > 0) throw new Refusal(process.configFaults)
  if (call.options.includes(SECRET_PREFIX)) process.forbidCoreDumps()
  const request = readRequest(call.directory, call.options, session.config, kinds)
  session.note({ pod: request.pod, source: sourceText(request.source) })
  const given = await mount(session, request)
  if (request.ownership !== 'auto' || given.why === undefined) return undefined
  return `ownership ${given.by}: ${given.why}`
}
