import { NRI_WORKER_LIMITS } from '../../../src/frontends/nri/worker-tasks.ts'
import { type HangingServer, spawnHangingServer } from '../../helpers/hanging-process.ts'
import { measureEachProcess } from '../../helpers/memory.ts'
import type { NriNode } from './node.ts'
import type { RuntimeEnd } from './runtime.ts'

/** The namespaces of as many containers as the limits let begin. */
const NAMESPACES = [0, 0, 0, 1, 2, 3, 4]
/** On a busy machine a worker may be killed before it has begun. */
const ATTEMPTS = 24
const FIRST_POD = 20

/**
 * Has the plugin map as many volumes as its limits let, and each waits for a server that hangs. The plugin checks some of them in the
 * background meanwhile, and these checks wait too.
 */
export async function stickWorkers(node: NriNode, end: RuntimeEnd): Promise<HangingServer> {
  const served = `${node.top}/served`
  const server = await spawnHangingServer(served, `${node.top}/hangs`, 'all', 1)
  node.configure({ map: [{ fsTypes: ['fuse'] }] })
  const pods = NAMESPACES.map((_, at) => FIRST_POD + at * ATTEMPTS)
  const sources = pods.map((first) =>
    Array.from({ length: ATTEMPTS }, (_, more) => node.publish(first + more, served, undefined, `pvc-${first + more}`)),
  )
  server.hang()
  const stick = async (at: number, attempt = 0): Promise<void> => {
    const request = node.request((pods[at] ?? 0) + attempt, { 'modekeep/group': '2000' }, sources[at]?.[attempt])
    const pod = { ...request.pod, namespace: `hanging-${NAMESPACES[at]}` }
    const { status } = await end.call('CreateContainer', 'ContainerRequest', { ...request, pod })
    if (status?.message.includes('did not answer in time')) return
    if (attempt + 1 === ATTEMPTS) throw new Error(`no volume hung: ${status?.message}`)
    await stick(at, attempt + 1)
  }
  await Promise.all(NAMESPACES.map((_, at) => stick(at)))
  return server
}

/** The most workers that wait then: those that map, and those that check. */
export const STUCK = NRI_WORKER_LIMITS.maxPerKind + (NRI_WORKER_LIMITS.maxByKind?.check ?? 0)

/** The memory of each of the plugin's workers, in KiB. */
export const memoryOfWorkers = (node: NriNode) => measureEachProcess(node.top, 'nri-worker')
