import { describe, expect, it } from 'vitest'
import { createFault, type Fault } from '../../../src/errors/fault.ts'
import {
  answerVolumeCall,
  type VolumeCall,
  type VolumeCallContext,
} from '../../../src/frontends/flexvolume/volume-call.ts'
import { createCallLog } from '../../../src/log/call-log.ts'
import { rendered } from '../../helpers/rendered.ts'
import { memoryStage, type Stage } from '../../helpers/stage.ts'
import { groups, makeTree } from '../../helpers/tree.ts'

function arrange(configFaults: Fault[] = []) {
  const stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes/data`, ['file test 0640 7'])
  const lines: Record<string, unknown>[] = []
  let forbidden = 0
  const answer = (call: VolumeCall) => {
    const log = createCallLog({ verb: call.verb, directory: call.directory }, 'info', (line) =>
      lines.push(JSON.parse(line)),
    )
    const process: VolumeCallContext = {
      host: stage.host,
      config: stage.config,
      log,
      configFaults,
      forbidCoreDumps: () => {
        forbidden++
      },
    }
    return answerVolumeCall(call, process)
  }
  return { stage, lines, answer, forbidden: () => forbidden }
}

function mountCall(stage: Stage, options: Record<string, string>): VolumeCall {
  const directory = stage.podDirectory('a')
  stage.fs.mkdirSync(directory, { recursive: true })
  return { verb: 'mount', directory, options: JSON.stringify(options) }
}

describe("kubelet's FlexVolume call", () => {
  it("is answered by Success with the chosen method, if the pod's author left the choice to modekeep", async () => {
    const { stage, lines, answer } = arrange()
    const source = `${stage.top}/volumes/data`
    const options = { source, ownership: 'auto', 'kubernetes.io/fsGroup': '2000', 'kubernetes.io/pod.name': 'p' }
    expect(await answer(mountCall(stage, options))).toMatchObject({
      status: 'Success',
      message: expect.stringMatching(/^ownership idmap: the file system maps groups/),
    })
    expect(groups(stage.shown('a')).test).toBe(7)
    expect(lines).toMatchObject([{ verb: 'mount', outcome: 'Success', decision: 'fresh', pod: 'p', source }])
    expect(await answer({ verb: 'unmount', directory: stage.podDirectory('a') })).toEqual({ status: 'Success' })
    expect(rendered(stage.layers('a'))).toEqual([])
  })

  it('is answered by Failure with the refusal, and nothing is mounted', async () => {
    const { stage, lines, answer } = arrange()
    const reply = await answer(mountCall(stage, { source: '/elsewhere' }))
    expect(reply).toMatchObject({
      status: 'Failure',
      message: expect.stringMatching(/may not have bind "\/elsewhere" .* "allow"/),
    })
    expect(stage.layers('a')).toEqual([])
    expect(lines).toMatchObject([{ level: 'error', outcome: 'Failure', isRefused: true }])
  })

  it('is refused with an invalid configuration if it mounts, and succeeds if it unmounts', async () => {
    const { stage, lines, answer } = arrange([
      createFault('config-invalid', 'node configuration c: key "x" is unknown'),
    ])
    expect(rendered(await answer(mountCall(stage, { source: `${stage.top}/volumes/data` })))).toEqual({
      status: 'Failure',
      message: 'node configuration c: key "x" is unknown [config-invalid]',
    })
    expect(await answer({ verb: 'unmount', directory: stage.podDirectory('a') })).toEqual({ status: 'Success' })
    expect(rendered(lines.filter(({ level }) => level === 'warn'))).toHaveLength(2)
  })

  it("adds a log line that names the pod, even if options or the node's configuration are refused", async () => {
    const pod = { 'kubernetes.io/pod.namespace': 'shop', 'kubernetes.io/pod.name': 'cart' }
    const { stage, lines, answer } = arrange()
    await answer(mountCall(stage, { ...pod, ownership: 'wlak' }))
    await answer(mountCall(stage, { ...pod, source: `${stage.top}/volumes/data` }))
    await answer({ verb: 'unmount', directory: stage.podDirectory('a') })
    const broken = arrange([createFault('config-invalid', 'node configuration c: key "x" is unknown')])
    await broken.answer(mountCall(broken.stage, pod))
    expect([...lines, ...broken.lines].map(({ verb, level, pod: named }) => [verb, level, named])).toEqual([
      ['mount', 'error', 'shop/cart'],
      ['mount', 'info', 'shop/cart'],
      ['unmount', 'info', 'shop/cart'],
      ['mount', 'warn', 'shop/cart'],
      ['mount', 'error', 'shop/cart'],
    ])
  })

  it('forbids core dumps before it decodes a secret, and not without a secret', async () => {
    const { stage, answer, forbidden } = arrange()
    const source = `${stage.top}/volumes/data`
    await answer(mountCall(stage, { source }))
    expect(rendered(forbidden())).toBe(0)
    await answer(mountCall(stage, { source, 'kubernetes.io/secret/key': 'eA==' }))
    expect(forbidden()).toBe(1)
  })
})
