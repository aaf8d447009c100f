import { existsSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { PodGroups } from '../src/nri/pod-groups.ts'

// A thread that asks the container runtime for the groups of pods, see pod-groups-thread.ts.
const sockets: readonly string[] = workerData
const groups = new PodGroups(() => sockets.filter((path) => existsSync(path)))
parentPort?.on('message', async (sandbox: string) => {
  parentPort?.postMessage({ sandbox, groups: await groups.of(sandbox) })
})
// The first container is not to wait until there is a connection.
void groups.of('')
