import { existsSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { readConfig } from '../src/config/read-config.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { CRI_SOCKETS, RUNTIME_SOCKETS, SandboxReader } from '../src/frontends/nri/cri.ts'
import type { ReadAnswer, ReaderData, ReadRequest } from '../src/frontends/nri/node-reader.ts'
import { readPodVolumes } from '../src/frontends/nri/pod-volumes.ts'
import { raisePriority } from './process.ts'

// Entry of the thread that reads for the one that answers the container runtime: see src/frontends/nri/node-reader.ts.
// Container creation waits for it, so its priority is raised.
raisePriority()
const { criSocket, env }: ReaderData = workerData
const createReader = (usual: readonly string[]) =>
  new SandboxReader(() => (criSocket === undefined ? usual : [criSocket]).filter((path) => existsSync(path)))
// CRI-O reports no groups.
const [groups, sandboxes] = [createReader(CRI_SOCKETS), createReader(RUNTIME_SOCKETS)]

async function read(request: ReadRequest): Promise<unknown> {
  if (request.read === 'pod') return readPodVolumes(request.kubeletDir, request.uid)
  if (request.read === 'groups') return groups.readGroups(request.sandbox)
  if (request.read === 'sandboxes') return sandboxes.list()
  const { config, faults } = await readConfig(env)
  return { config: { map: config.map }, faults }
}

/** Sends a Refusal as its faults, because an error loses its class on the way to another thread. */
async function answer(request: ReadRequest): Promise<ReadAnswer> {
  try {
    return { value: await read(request) }
  } catch (error) {
    return error instanceof Refusal ? { refusal: error.faults } : { error: formatError(error) }
  }
}

parentPort?.on('message', async ({ id, request }: { id: number; request: ReadRequest }) => {
  parentPort?.postMessage({ id, answer: await answer(request) })
})
// Connects to the runtime now, so that the first container does not wait for it.
void groups.readGroups('')
