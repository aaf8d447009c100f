import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NRI_WORKER_LIMITS } from '../../src/frontends/nri/worker-tasks.ts'
import { makeVolume, NriNode } from '../frontends/nri/node.ts'
import { memoryOfWorkers, STUCK, stickWorkers } from '../frontends/nri/stuck-workers.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { readProcessState } from '../helpers/hanging.ts'
import { measureMemory } from '../helpers/memory.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe('mkfs.ext4')
/** Containers that come before. */
const HEALTHY = 96
const AT_ONCE = 8
const MANIFEST = `${import.meta.dirname}/../../driver/kubernetes/nri/kustomization.yaml`

/** KiB. */
function memoryLimit(): number {
  const [, mebibytes] = /limits: \{ memory: (\d+)Mi \}/.exec(fs.readFileSync(MANIFEST, 'utf8')) ?? []
  return Number(mebibytes) * 1024
}

describe.skipIf(skipReason !== '')(
  addSkipReason('an NRI plugin whose workers wait for hanging volumes', skipReason),
  () => {
    it("uses less memory than its container's limit with the maximum number of workers", async () => {
      const node = new NriNode()
      onTestFinished(() => node.end())
      const end = await node.serve()
      // Workers that have had many jobs are larger than new ones.
      const source = node.publish(1, makeVolume(node, 1))
      for (let at = 0; at < HEALTHY; at += AT_ONCE) {
        const requests = Array.from({ length: AT_ONCE }, (_, more) => {
          return node.request(1, { 'modekeep/group': '2000' }, source, String(at + more).padStart(64, 'a'))
        })
        await Promise.all(requests.map((one) => end.call('CreateContainer', 'ContainerRequest', one)))
      }
      const { server } = await stickWorkers(node, end)
      onTestFinished(() => void server.kill('SIGKILL'))
      // Those that map were killed, and the kernel does not let them end.
      const waiting = () => memoryOfWorkers(node).filter(({ pid }) => readProcessState(pid) === 'D')
      await expect.poll(() => waiting().length, { timeout: 30_000 }).toBe(NRI_WORKER_LIMITS.maxPerKind)
      await expect.poll(() => memoryOfWorkers(node).length, { timeout: 30_000 }).toBe(STUCK)
      const { files, own } = measureMemory(node.top)
      const workers = memoryOfWorkers(node).map((worker) => worker.own)
      const plugin = own - workers.reduce((all, one) => all + one, 0)
      // Each worker may become as large as the largest is.
      const most = files + plugin + (NRI_WORKER_LIMITS.maxTotal ?? Number.POSITIVE_INFINITY) * Math.max(...workers)
      expect(most).toBeLessThan(memoryLimit())
    })
  },
)
