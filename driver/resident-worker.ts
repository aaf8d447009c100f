import { dirname } from 'node:path'
import { readConfig } from '../src/config/read-config.ts'
import {
  createInitReply,
  type FlexVolumeReply,
  formatReplyLine,
  parseFlexVolumeCall,
} from '../src/frontends/flexvolume/protocol.ts'
import { hasSameVariables, mayMakeResidentCall, type ResidentCall } from '../src/frontends/flexvolume/resident-call.ts'
import { listenForResidentCalls } from '../src/frontends/flexvolume/resident-server.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { markProcessSupervised } from '../src/kernel/linux/processes.ts'
import { nodeFs } from '../src/kernel/path-handle.ts'
import { makeDirectories } from '../src/kernel/write-file.ts'
import { removeStaleSocketAt, watchForLostSocket } from '../src/rpc/socket.ts'
import { computeSilenceLimitMs } from '../src/worker/given-up.ts'
import { startPeriodicReports } from '../src/worker/serve.ts'
import { keepHeapSmall } from './process.ts'
import { discardStderr, writeWholeText } from './streams.ts'
import { answerSupervisedVolumeCall } from './volume-call.ts'

/** The loader's default: driver/loader/resident.c. */
const DEFAULT_SOCKET_PATH = '/run/modekeep/flexvolume.sock'
const SOCKET_DIRECTORY_MODE = 0o700
/** A worker that took longer for a call ends after it, to free its memory. */
const LONG_CALL_MS = 5000

/** Answers calls of the loader until stdin ends, or its socket is removed. A running call is completed. */
export async function serveResidentCalls(env: NodeJS.ProcessEnv): Promise<void> {
  markProcessSupervised()
  keepHeapSmall()
  discardStderr()
  const ended = Promise.withResolvers<void>()
  process.stdin.once('end', ended.resolve).once('error', ended.resolve).resume()
  const path = env.MODEKEEP_SOCKET ?? DEFAULT_SOCKET_PATH
  makeDirectories(nodeFs, dirname(path), SOCKET_DIRECTORY_MODE)
  if (!(await removeStaleSocketAt(path))) return
  await Promise.all([
    readConfig(env),
    import('../src/mount/run.ts'),
    import('../src/mount/unmount.ts'),
    import('../src/fsgroup/walk-volume.ts'),
  ])
  const listener = await listenForResidentCalls(path, async (call, write) => {
    const began = performance.now()
    const reply = await answerResidentCall(call, env, write)
    if (performance.now() - began >= LONG_CALL_MS) ended.resolve()
    return reply && formatReplyLine(reply)
  })
  {
    using _watch = watchForLostSocket([listener], () => ended.resolve())
    await ended.promise
  }
  await listener.close()
}

/** @returns undefined if the process that kubelet started must make the call */
async function answerResidentCall(
  { umask, argv, env: callerEnv }: ResidentCall,
  env: NodeJS.ProcessEnv,
  write: (text: string) => void,
): Promise<FlexVolumeReply | undefined> {
  if (!hasSameVariables(callerEnv, env)) return undefined
  const call = parseFlexVolumeCall(argv)
  if (call.verb === 'other') return undefined
  // Each call reads the configuration, because the file may have changed since the last one.
  const file = await readConfig(env)
  if (call.verb === 'init') return createInitReply(file)
  if (!mayMakeResidentCall(call, { host: linuxHost, config: file.config })) return undefined
  const report = (text: string, patience: { patienceMs?: number }) => {
    write(text)
    // To heal, which kills this process after too long without a report.
    writeWholeText(`${JSON.stringify(patience)}\n`)
  }
  const limitSilence = (patienceMs = computeSilenceLimitMs(file.config)) => report(`${patienceMs}\n`, { patienceMs })
  using isAlive = startPeriodicReports(() => report('\n', {}))
  limitSilence()
  process.umask(umask)
  try {
    return await answerSupervisedVolumeCall(call, file, { isAlive, limitSilence }, { door: 'resident' })
  } finally {
    writeWholeText('{"outcome":null}\n')
  }
}
