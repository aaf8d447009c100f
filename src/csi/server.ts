import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createUnaryHandlers, listen, type SocketServer } from '../grpc/server.ts'
import { removeStaleSocket, statPath } from '../grpc/socket.ts'
import { makeDirectories } from '../host/make-directory.ts'
import { nodeFs } from '../host/node-fs.ts'
import { isRefusedPath, openGuardedParent } from '../host/write-file.ts'
import type { Level } from '../log/call-log.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { type StartWorker, Workers } from '../worker-pool/workers.ts'
import { Identity, Node, Registration } from './messages.ts'
import { createNodeHandlers, type DriverSettings } from './node-service.ts'
import { CHECK_INTERVAL_MS, type PodInfoGuard } from './pod-info.ts'
import { PublicationQueue } from './publication-queue.ts'
import {
  CSI_WORKER_LIMITS,
  type CsiTask,
  type CsiTaskOutcome,
  type CsiTaskProgress,
  LOST_CSI_TASK,
  superviseCsiTasks,
} from './worker-tasks.ts'

export interface CsiServerSettings extends DriverSettings {
  readonly podInfo: PodInfoGuard
  readonly startWorker: StartWorker<CsiTask, CsiTaskOutcome, CsiTaskProgress>
  /** Milliseconds for which a worker may report nothing. */
  readonly patienceMs: number
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/** How long calls under way are waited for at the end, ms. */
const DRAIN_MS = 500
/** Between two looks whether the sockets are where they were made. */
const SOCKET_CHECK_MS = 10_000

const DIRECTORY_MODE = 0o700

/** Where a driver's sockets are: kubelet finds it by the second. */
export function resolveSocketPaths(directory: string, name: string): { csi: string; registration: string } {
  return {
    csi: join(directory, 'plugins', name, 'csi.sock'),
    registration: join(directory, 'plugins_registry', `${name}-reg.sock`),
  }
}

/**
 * Serves until stopped. What workers are at then goes on without it. Only one may run on a node: whoever calls it holds
 * a lock for that.
 * @throws {Refusal} where its sockets cannot be where kubelet looks for them, or are there no longer
 */
export async function serveCsi(settings: CsiServerSettings, stop: AbortSignal): Promise<void> {
  const { directory, name, podInfo, startWorker, patienceMs, log } = settings
  const paths = resolveSocketPaths(directory, name)
  makeSocketDirectories(directory, Object.values(paths).map(dirname))
  for (const path of Object.values(paths)) await removeStaleSocketAt(path)
  const workers = new Workers(startWorker, CSI_WORKER_LIMITS, LOST_CSI_TASK, superviseCsiTasks(patienceMs))
  const publications = new PublicationQueue(workers, () => performance.now())
  const refused = (method: string, code: string, message: string) => log('warn', 'refused', { method, code, message })
  const servers: SocketServer[] = []
  const checking = setInterval(() => void podInfo.check(), CHECK_INTERVAL_MS)
  void podInfo.check()
  try {
    servers.push(
      await listen(
        paths.csi,
        { ...Identity, ...Node },
        createNodeHandlers(settings, publications, podInfo, { refused }),
      ),
    )
    // Kubelet calls as soon as it sees it.
    servers.push(await listen(paths.registration, Registration, createRegistrationHandlers(settings, paths.csi)))
    log('info', 'listening', { sockets: Object.values(paths) })
    await waitForStop(servers, stop)
  } finally {
    clearInterval(checking)
    // First what kubelet finds it by.
    await Promise.all(servers.reverse().map((server) => server.close(DRAIN_MS)))
    workers.close()
    log('info', 'closed')
  }
}

function createRegistrationHandlers({ name, podInfo, log }: CsiServerSettings, endpoint: string) {
  const refused = (method: string, message: string) => log('warn', 'refused', { method, message })
  return createUnaryHandlers<typeof Registration>(refused, {
    GetInfo: () => ({ type: 'CSIPlugin', name, endpoint, supportedVersions: ['1.0.0'] }),
    NotifyRegistrationStatus({ pluginRegistered, error }) {
      // Kubelet publishes from now on, and waits for this check.
      void podInfo.check()
      if (pluginRegistered) log('info', 'registered')
      else log('error', 'not-registered', { message: error })
      return {}
    },
  })
}

/** @throws {Refusal} where kubelet has no such directory, or others could exchange a socket */
function makeSocketDirectories(root: string, places: readonly string[]): void {
  if (!fs.existsSync(root)) {
    throw new Refusal(`kubelet has no directory ${quoted(root)} here: give its --root-dir as --kubelet-dir`)
  }
  for (const place of places) {
    try {
      makeDirectories(nodeFs, place, DIRECTORY_MODE)
      openGuardedParent(nodeFs, place)[Symbol.dispose]()
      if (statPath(place)?.isDirectory()) continue
    } catch (error) {
      if (!isRefusedPath(error)) throw error
    }
    throw new Refusal(
      `others than root may write to ${quoted(place)} or a directory above it, or it is a link: make it a directory, chown root and chmod go-w the directories of its path`,
    )
  }
}

/** A killed server leaves its sockets, and kubelet waits for them. */
async function removeStaleSocketAt(path: string): Promise<void> {
  using parent = openGuardedParent(nodeFs, dirname(path))
  if (await removeStaleSocket(parent, basename(path))) return
  throw new Refusal(`something else is at ${quoted(path)}, or another server listens there: end it, or remove it`)
}

/** @throws {Refusal} when a socket is not at its place any more: kubelet would never call again */
async function waitForStop(servers: readonly SocketServer[], stop: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = setInterval(() => {
    const lost = servers.find(({ path, inode }) => statPath(path)?.ino !== inode)
    if (lost)
      reject(new Refusal(`the socket ${basename(lost.path)} was removed by somebody else: start the server again`))
  }, SOCKET_CHECK_MS)
  stop.addEventListener('abort', () => resolve(), { once: true })
  if (stop.aborted) resolve()
  try {
    await promise
  } finally {
    clearInterval(look)
  }
}
