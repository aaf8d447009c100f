import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { parse } from 'protobufjs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listPods, MESSAGES } from '../../src/heal/pod-resources.ts'
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

describe('the pods that kubelet has', () => {
  it.each(['v1', 'v1alpha1'] as const)('are asked for by %s, and known by namespace and name', async (version) => {
    kubelet = await PodResources.listen(socket(), { version })
    kubelet.pods = ['default/web-0', 'kube-system/proxy']
    expect(await listPods(socket(), 2000)).toEqual(['default/web-0', 'kube-system/proxy'])
    kubelet.pods = []
    expect(await listPods(socket(), 2000)).toEqual([])
  })

  it('are unknown where kubelet is silent: nobody waits for it longer than said', async () => {
    kubelet = await PodResources.listen(socket(), { version: 'v1', isSilent: true })
    const started = performance.now()
    await expect(listPods(socket(), 300)).rejects.toMatchObject({ code: grpc.status.DEADLINE_EXCEEDED })
    expect(performance.now() - started).toBeLessThan(5000)
  })

  it('are unknown where nobody listens, where nothing is, and where the service has another name', async () => {
    await expect(listPods(socket(), 1000)).rejects.toThrow()
    kubelet = await PodResources.listen(socket(), { version: 'v2' })
    await expect(listPods(socket(), 1000)).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED })
    await kubelet.close()
    fs.writeFileSync(socket(), '')
    await expect(listPods(socket(), 1000)).rejects.toThrow()
  })

  it('are read by the numbers of the published proto', () => {
    const { root } = parse(PROTO('v1'))
    for (const [message, fields] of Object.entries(MESSAGES)) {
      const published = root.lookupType(`v1.${message}`)
      for (const [field, [number, type]] of Object.entries<readonly [number, string, string?]>(fields)) {
        expect(published.fields[field]).toMatchObject({ id: number, type })
      }
    }
  })
})
