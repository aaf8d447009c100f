import { beforeEach, describe, expect, it } from 'vitest'
import { type HealCommand, healNode, healVerb as verb } from '../../../src/cli/commands/heal.ts'
import { readContainerStatuses } from '../../../src/cli/node-state/containers.ts'
import { type ContainerRecord, containerRecords } from '../../../src/state/container-record.ts'
import { nriPluginRecord } from '../../../src/state/process-records.ts'
import { memoryStage, type Stage } from '../../helpers/stage.ts'

const COMMAND: HealCommand = { verb: 'heal', isDry: false, isWatching: false, listen: undefined, kubelet: undefined }
const UID = '0a0b0c0d-1111-2222-3333-444455556666'
const WHY = 'it was created while no "modekeep nri" was asked'

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
  stage.fs.mkdirSync(`${stage.top}/kubelet/pods/${UID}`, { recursive: true })
})

function record(why: string | undefined, more: Partial<ContainerRecord> = {}): void {
  const volume = { volume: 'data', destination: '/data', source: '/source', isOwn: false, to: 2000, why }
  containerRecords.write(stage.session(), {
    container: 'c0ffee',
    containerName: 'app',
    sandbox: '5a',
    pod: { namespace: 'shop', name: 'web-0', uid: UID },
    kubeletDir: `${stage.top}/kubelet`,
    boot: stage.host.bootId(),
    at: 0,
    state: 'started',
    volumes: [volume],
    ...more,
  })
}

describe('heal, for containers of the NRI plugin,', () => {
  it('reports a running container without its group, the reason and the remedy, and still succeeds', async () => {
    record(WHY)
    const document = await healNode(stage.session(), COMMAND)
    expect(document.containers).toEqual([
      {
        ...{ container: 'c0ffee', name: 'app', pod: 'shop/web-0', volume: 'data', group: 2000 },
        ...{ state: 'without', action: 'none', reason: WHY },
        remedy:
          'no "modekeep nri" runs on this node: start it; then kubectl delete pod web-0 --namespace shop, so that its containers are created anew',
      },
    ])
    expect(verb.hasTrouble?.(document)).toBe(false)
    expect(stage.noted.containers).toHaveLength(1)
  })

  it('advises only to delete the pod while the plugin is registered', async () => {
    record(WHY)
    const plugin = { isRegistered: true, runtime: 'containerd v2.1.9', since: 0, socket: '/run/nri.sock' }
    nriPluginRecord.write(stage.session(), plugin)
    using _lock = stage.host.tryLock(`${stage.config.stateDir}/nri.lock`)
    const { containers } = await healNode(stage.session(), COMMAND)
    expect(containers[0]?.remedy).toMatch(/^kubectl delete pod web-0 --namespace shop, /)
  })

  it('does not report a container that has its group, whose pod is deleted, or that is of an earlier boot', async () => {
    record(undefined)
    expect((await healNode(stage.session(), COMMAND)).containers).toEqual([])
    record(WHY, { boot: 'earlier' })
    expect((await healNode(stage.session(), COMMAND)).containers).toEqual([])
    record(WHY)
    stage.fs.rmSync(`${stage.top}/kubelet/pods/${UID}`, { recursive: true })
    expect((await healNode(stage.session(), COMMAND)).containers).toEqual([])
  })

  it('reports the same containers as status: all that may still exist', () => {
    record(undefined)
    expect(readContainerStatuses(stage.session())).toMatchObject([{ state: 'mapped' }])
    record(undefined, { boot: 'earlier' })
    expect(readContainerStatuses(stage.session())).toEqual([])
    record(undefined, { state: 'created' })
    stage.fs.rmSync(`${stage.top}/kubelet/pods/${UID}`, { recursive: true })
    expect(readContainerStatuses(stage.session())).toEqual([])
    stage.fs.writeFileSync(`${stage.config.stateDir}/nri/c0ffee.json`, '{')
    expect(readContainerStatuses(stage.session())).toEqual([])
    stage.host.processesNow = () => () => true
    expect(readContainerStatuses(stage.session())).toMatchObject([{ state: 'unreadable' }])
  })

  it('reports a container with an unreadable record as long as the container may exist', async () => {
    record(WHY)
    stage.fs.writeFileSync(`${stage.config.stateDir}/nri/c0ffee.json`, '{')
    expect((await healNode(stage.session(), COMMAND)).containers).toEqual([])
    stage.host.processesNow = () => () => true
    expect((await healNode(stage.session(), COMMAND)).containers).toMatchObject([{ state: 'unreadable', pod: '' }])
  })
})
