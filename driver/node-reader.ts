import { existsSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { readConfig } from '../src/config/read-config.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { CONTAINERD_SOCKET_PATHS, RUNTIME_SOCKET_PATHS, SandboxReader } from '../src/frontends/nri/cri.ts'
import type { NodeFileReadRequest, NodeReadAnswer, NodeReaderThreadData } from '../src/frontends/nri/node-reader.ts'
import { readPodVolumes } from '../src/frontends/nri/pod-volumes.ts'
import { raiseThreadPriority } from './process.ts'

// Entry of the thread that reads for the one that answers the container runtime: see src/frontends/nri/node-reader.ts.
// Container creation waits for it, so its priority is raised.
raiseThreadPriority()
const { criSocket, env }: NodeReaderThreadData = workerData
const createSandboxReader = (usual: readonly string[]) =>
  new SandboxReader(() => (criSocket === undefined ? usual : [criSocket]).filter((path) => existsSync(path)))
// CRI-O reports no groups.
const [groups, sandboxes] = [createSandboxReader(CONTAINERD_SOCKET_PATHS), createSandboxReader(RUNTIME_SOCKET_PATHS)]

async function readNodeData(request: NodeFileReadRequest): Promise<unknown> {
  if (request.read === 'pod') return readPodVolumes(request.kubeletDir, request.uid)
  if (request.read === 'groups') return groups.readGroups(request.sandbox)
  if (request.read === 'sandboxes') return sandboxes.list()
  const { config, faults } = await readConfig(env)
  return { config: { map: config.map }, faults }
}

/** Sends a Refusal as its faults, because an error loses its class on the way to another thread. */
async function answerReadRequest(request: NodeFileReadRequest): Promise<NodeReadAnswer> {
  try {
    return { value: await readNodeData(request) }
  } catch (error) {
    return error instanceof Refusal ? { refusal: error.faults } : { error: formatError(error) }
  }
}

parentPort?.on('message', async ({ id, request }: { id: number; request: NodeFileReadRequest }) => {
  parentPort?.postMessage({ id, answer: await answerReadRequest(request) })
})
// Connects to the runtime now, so that the first container does not wait for it.
void groups.readGroups('')
