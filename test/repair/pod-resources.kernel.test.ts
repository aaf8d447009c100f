import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { parse } from 'protobufjs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listNodePods, POD_RESOURCES_MESSAGES } from '../../src/repair/kubelets.ts'
import { PodResources, PROTO } from '../helpers/pod-resources.ts'

let top: string
let kubelet: PodResources | undefined
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-pod-resources-'))
})
afterEach(async () => {
  await kubelet?.close()
  kubelet = undefined
  fs.rmSync(top, { recursive: true, force: true })
})
const socket = () => join(top, 'kubelet.sock')

describe('the pods that kubelet lists', () => {
  it.each(['v1', 'v1alpha1'] as const)('are queried by %s, by namespace and name', async (version) => {
    kubelet = await PodResources.listen(socket(), { version })
    kubelet.pods = ['default/web-0', 'kube-system/proxy']
    expect(await listNodePods(socket(), 2000)).toEqual(['default/web-0', 'kube-system/proxy'])
    kubelet.pods = []
    expect(await listNodePods(socket(), 2000)).toEqual([])
  })

  it('are unknown after the time limit if kubelet does not respond', async () => {
    kubelet = await PodResources.listen(socket(), { version: 'v1', isSilent: true })
    const started = performance.now()
    await expect(listNodePods(socket(), 300)).rejects.toMatchObject({ code: grpc.status.DEADLINE_EXCEEDED })
    expect(performance.now() - started).toBeLessThan(5000)
  })

  it('are unknown without a listener, without a socket, and if the service has another name', async () => {
    await expect(listNodePods(socket(), 1000)).rejects.toThrow()
    kubelet = await PodResources.listen(socket(), { version: 'v2' })
    await expect(listNodePods(socket(), 1000)).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED })
    await kubelet.close()
    fs.writeFileSync(socket(), '')
    await expect(listNodePods(socket(), 1000)).rejects.toThrow()
  })

  it('have the field numbers of the published proto', () => {
    const { root } = parse(PROTO('v1'))
    for (const [message, fields] of Object.entries(POD_RESOURCES_MESSAGES)) {
      const published = root.lookupType(`v1.${message}`)
      for (const [field, [number, type]] of Object.entries<readonly [number, string, string?]>(fields)) {
        expect(published.fields[field]).toMatchObject({ id: number, type })
      }
    }
  })
})
