import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { formatError, quoteValue, Refusal } from '../../errors/refusal.ts'
import { nodeFs } from '../../kernel/path-handle.ts'
import { isPathRefusal } from '../../kernel/system-error.ts'
import type { StartWorker } from '../../kernel/worker-process.ts'
import { makeDirectories, openGuardedParentDirectory } from '../../kernel/write-file.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { callGrpcMethodOnce } from '../../rpc/client.ts'
import { createUnaryCallHandlers, type GrpcSocketServer, listenOnGrpcSocket } from '../../rpc/server.ts'
import { removeStaleSocketAt, statSocketPath, watchForLostSocket } from '../../rpc/socket.ts'
import { WorkerPool } from '../../worker/pool.ts'
import { CsiIdentityService, CsiNodeService, PluginRegistrationService } from './messages.ts'
import { type CsiDriverSettings, createCsiServiceHandlers } from './node-service.ts'
import { POD_INFO_CHECK_INTERVAL_MS, type PodInfoOnMountGuard } from './pod-info.ts'
import { VolumePublicationQueue } from './publication-queue.ts'
import {
  CSI_WORKER_LIMITS,
  type CsiTask,
  type CsiTaskOutcome,
  type CsiTaskProgress,
  createCsiTaskSupervision,
  LOST_CSI_TASK_OUTCOMES,
} from './worker-tasks.ts'

interface CsiServerSettings extends CsiDriverSettings {
  readonly podInfo: PodInfoOnMountGuard
  readonly startWorker: StartWorker<CsiTask, CsiTaskOutcome, CsiTaskProgress>
  /** Time without a report after which a worker is killed. */
  readonly patienceMs: number
  readonly log: LogEvent
}

/** Time limit for running calls when the server stops. */
const SERVER_DRAIN_TIMEOUT_MS = 500

const SOCKET_DIRECTORY_MODE = 0o700

/** Resolves the paths of a driver's sockets. Kubelet discovers the driver by the registration socket. */
export function resolveCsiSocketPaths(directory: string, name: string): { csi: string; registration: string } {
  return {
    csi: join(directory, 'plugins', name, 'csi.sock'),
    registration: join(directory, 'plugins_registry', `${name}-reg.sock`),
  }
}

/**
 * Serves until `stop` aborts. Running tasks of workers continue after that. The caller holds a lock that keeps other servers
 * from running on the node.
 * @throws {Refusal} if its sockets cannot be created in kubelet's directories, or were removed
 */
export async function serveCsi(settings: CsiServerSettings, stop: AbortSignal): Promise<void> {
  const { directory, name, podInfo, startWorker, patienceMs, log } = settings
  const paths = resolveCsiSocketPaths(directory, name)
  makeSocketDirectories(directory, Object.values(paths).map(dirname))
  for (const path of Object.values(paths)) await removeStaleServerSocket(path)
  const workers = new WorkerPool(
    startWorker,
    CSI_WORKER_LIMITS,
    LOST_CSI_TASK_OUTCOMES,
    createCsiTaskSupervision(patienceMs),
  )
  const queue = new VolumePublicationQueue(workers, () => performance.now())
  const refused = (method: string, message: string, code: string) => log('warn', 'refused', { method, code, message })
  const servers: GrpcSocketServer[] = []
  const checking = setInterval(() => void podInfo.check(), POD_INFO_CHECK_INTERVAL_MS)
  void podInfo.check()
  try {
    servers.push(
      await listenOnGrpcSocket(
        paths.csi,
        { ...CsiIdentityService, ...CsiNodeService },
        createCsiServiceHandlers(settings, queue, podInfo, refused),
      ),
    )
    // Kubelet calls as soon as the registration socket exists, so it is created last.
    servers.push(
      await listenOnGrpcSocket(
        paths.registration,
        PluginRegistrationService,
        createPluginRegistrationHandlers(settings, paths.csi),
      ),
    )
    log('info', 'listening', { sockets: Object.values(paths) })
    await waitForServerStop(servers, stop)
  } finally {
    clearInterval(checking)
    // Closes the registration socket first.
    await Promise.all(servers.reverse().map((server) => server.close(SERVER_DRAIN_TIMEOUT_MS)))
    workers.close()
    log('info', 'closed')
  }
}

function createPluginRegistrationHandlers({ name, podInfo, log }: CsiServerSettings, endpoint: string) {
  const refused = (method: string, message: string) => log('warn', 'refused', { method, message })
  return createUnaryCallHandlers<typeof PluginRegistrationService>(refused, {
    GetInfo: () => ({ type: 'CSIPlugin', name, endpoint, supportedVersions: ['1.0.0'] }),
    NotifyRegistrationStatus({ pluginRegistered, error }) {
      // Kubelet publishes from now on. Its calls wait for this check.
      void podInfo.check()
      if (pluginRegistered) log('info', 'registered')
      else log('error', 'not-registered', { message: error })
      return {}
    },
  })
}

/** @throws {Refusal} if kubelet's directory is missing, or users other than root could replace a socket */
function makeSocketDirectories(root: string, directories: readonly string[]): void {
  if (!fs.existsSync(root)) {
    throw Refusal.of(
      'server-directory',
      `kubelet has no directory ${quoteValue(root)} here`,
      'give its --root-dir as --kubelet-dir',
    )
  }
  for (const directory of directories) {
    let reason = ''
    try {
      makeDirectories(nodeFs, directory, SOCKET_DIRECTORY_MODE)
      openGuardedParentDirectory(nodeFs, directory)[Symbol.dispose]()
      if (statSocketPath(directory)?.isDirectory()) continue
    } catch (error) {
      if (!isPathRefusal(error)) throw error
      reason = ` (${formatError(error)})`
    }
    throw Refusal.of(
      'server-directory',
      `others than root may write to ${quoteValue(directory)} or a directory above it, or it is a link${reason}`,
      'make it a directory, chown root and chmod go-w the directories of its path',
    )
  }
}

/** Removes the socket of a killed server. */
async function removeStaleServerSocket(path: string): Promise<void> {
  if (await removeStaleSocketAt(path)) return
  throw Refusal.of(
    'server-directory',
    `something else is at ${quoteValue(path)}, or another server listens there`,
    'end it, or remove it',
  )
}

/** @throws {Refusal} if a socket was removed, because kubelet cannot call the server any more */
async function waitForServerStop(servers: readonly GrpcSocketServer[], stop: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  using _watch = watchForLostSocket(servers, ({ path }) =>
    reject(Refusal.of('server-directory', `the socket ${basename(path)} was removed`, 'start the server again')),
  )
  stop.addEventListener('abort', () => resolve(), { once: true })
  if (stop.aborted) resolve()
  await promise
}

/** Shorter than the timeout of kubelet's probe, so that kubelet's event contains the reason. */
const CSI_PROBE_TIMEOUT_MS = 5000

/**
 * Calls Probe of the server of a kubelet directory, on the socket that kubelet uses.
 * @returns the server's fault; undefined if it answers
 */
export async function probeCsiServer(directory: string, name: string): Promise<string | undefined> {
  const { csi, registration } = resolveCsiSocketPaths(directory, name)
  const missing = [csi, registration].find((path) => !statSocketPath(path)?.isSocket())
  if (missing !== undefined) return `no CSI server of ${name} runs here: there is no socket ${missing}`
  try {
    const { ready } = await callGrpcMethodOnce(csi, CsiIdentityService.Probe, {}, CSI_PROBE_TIMEOUT_MS)
    return ready?.value === false ? `the CSI server at ${csi} is not ready` : undefined
  } catch (error) {
    return `the CSI server at ${csi} gives no answer within ${CSI_PROBE_TIMEOUT_MS / 1000} s (${formatError(error)})`
  }
}
