import * as fs from 'node:fs'
import type { Call } from '../src/flexvolume/call.ts'
import { failureReply, type Reply } from '../src/flexvolume/reply.ts'
import { forbidCoreDumps } from '../src/host/linux/core-dumps.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { CallLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import { mount } from '../src/mount/mount.ts'
import { unmount } from '../src/mount/unmount.ts'
import { Refusal } from '../src/refusal/refusal.ts'
import { readRequest } from '../src/request/request.ts'
import { readSecrets, SECRET_PREFIX } from '../src/request/secrets.ts'
import type { Session } from '../src/store/session.ts'
import { kinds } from '../src/volume/index.ts'
import { readConfig } from './config.ts'
import { workerPool } from './worker-pool.ts'

type VolumeCall = Extract<Call, { verb: 'mount' | 'unmount' }>

/** Runs `mount` or `unmount` and logs it: one line, and one for each warning. */
export async function volumeCall(call: VolumeCall, env: NodeJS.ProcessEnv): Promise<Reply> {
  const { config, faults } = await readConfig(env)
  const { verb, directory } = call
  const log = new CallLog({ verb, directory }, config.logLevel, (line) => appendLine(fs, config.logFile, line))
  for (const fault of faults) log.warn(fault)
  const session: Session = {
    host: linuxHost,
    config,
    // Asked for by a walk only: a mount that is ready does without.
    get workerPool() {
      return workerPool()
    },
    // Decoded for the kinds that use them.
    get secrets() {
      return call.verb === 'mount' ? readSecrets(call.options) : new Map()
    },
    progress: (counts) => log.progress(counts),
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
  }
  try {
    const message = call.verb === 'mount' ? await mountAs(session, call, faults) : await unmount(session, directory)
    log.end('Success')
    return message ? { status: 'Success', message } : { status: 'Success' }
  } catch (error) {
    log.end('Failure', error)
    return failureReply(error)
  }
}

/** @returns what modekeep chose where the pod's author left it the choice */
async function mountAs(
  session: Session,
  call: Extract<Call, { verb: 'mount' }>,
  faults: string[],
): Promise<string | undefined> {
  if (faults.length > 0) throw new Refusal(faults)
  if (call.options.includes(SECRET_PREFIX)) forbidCoreDumps()
  const request = readRequest(call.directory, call.options, session.config, kinds)
  session.note({ pod: request.pod, source: request.source })
  const given = await mount(session, request)
  if (request.ownership !== 'auto' || given.why === '') return undefined
  return `ownership ${given.ownership}: ${given.why}`
}
