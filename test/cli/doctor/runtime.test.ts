import { describe, expect, it } from 'vitest'
import { checkContainerRuntime } from '../../../src/cli/doctor/node.ts'
import { DEFAULT_CONFIG } from '../../../src/config/defaults.ts'
import { containerRecords } from '../../../src/state/container-record.ts'
import { tryAcquireNodeLock } from '../../../src/state/locks.ts'
import { type NriPluginRecord, nriPluginRecord } from '../../../src/state/process-records.ts'
import type { Store } from '../../../src/state/record-directories.ts'
import { memoryStage } from '../../helpers/stage.ts'

const SOCKET = '/var/run/nri/nri.sock'
const UID = '0a0b0c0d-1111-2222-3333-444455556666'

function look(
  record: Partial<NriPluginRecord> | undefined,
  { isRunning = true, hasSocket = true, isListening = true, why = '' } = {},
) {
  const { host, fs } = memoryStage()
  const store = { host, config: DEFAULT_CONFIG }
  fs.mkdirSync('/var/run/nri', { recursive: true })
  if (hasSocket) fs.writeFileSync(SOCKET, '')
  const whole = { isRegistered: true, runtime: 'containerd v2.1.9', since: Date.parse('2026-01-01'), socket: SOCKET }
  if (record !== undefined) nriPluginRecord.write(store, { ...whole, ...record })
  using _ = isRunning ? tryAcquireNodeLock(store, 'nri') : undefined
  if (why !== '') lack(store, why)
  return [...checkContainerRuntime(store, { isListening: () => isListening })]
}

/** A container that runs without what it asked for. */
function lack(store: Store, why: string): void {
  const volume = { volume: 'data', destination: '/data', source: '/source', isOwn: false, to: 2000, why }
  store.host.files.makeDirectory(`/kubelet/pods/${UID}`)
  containerRecords.write(store, {
    ...{ container: 'c0ffee', containerName: 'app', sandbox: '5a', kubeletDir: '/kubelet', at: 0, state: 'started' },
    pod: { namespace: 'shop', name: 'web-0', uid: UID },
    boot: store.host.bootId(),
    volumes: [volume, { ...volume, volume: 'logs' }],
  })
}

describe('doctor, for the container runtime,', () => {
  it('reports ok with the version if the runtime calls the plugin', () => {
    expect(look({})).toEqual([
      { level: 'ok', text: 'the container runtime (containerd v2.1.9) asks "modekeep nri"', remedy: '' },
    ])
    expect(look({ nri: '0.11.0' })).toMatchObject([
      { text: expect.stringContaining('(containerd v2.1.9, NRI 0.11.0)') },
    ])
  })

  it('reports volumes that containers have without their group, with and without a running plugin', () => {
    const text = 'volumes that containers asked a group for and have without it: 2, such as "data" of pod shop/web-0'
    const remedy = expect.stringMatching(/^modekeep status says why of each; kubectl delete pod web-0 --namespace shop/)
    expect(look({}, { why: 'no' })).toMatchObject([{ level: 'ok' }, { level: 'warning', text, remedy }])
    expect(look(undefined, { isRunning: false, why: 'no' })).toMatchObject([
      { level: 'ok' },
      { level: 'warning', text, remedy: expect.stringContaining('no "modekeep nri" runs on this node: start it') },
    ])
  })

  it('reports a fault if the plugin has ended and containers are created without it', () => {
    expect(look({}, { isRunning: false })).toMatchObject([
      { level: 'fault', text: expect.stringContaining('was at work on this node (2026-01-01T00:00:00.000Z)') },
    ])
  })

  it('reports a fault if the NRI socket is missing (with the setting that enables NRI) or unresponsive', () => {
    expect(look({ isRegistered: false }, { hasSocket: false })).toMatchObject(
      [
        { level: 'fault', text: `the container runtime has no NRI socket at "${SOCKET}"`, remedy: /disable = true/ },
      ].map((one) => ({ ...one, remedy: expect.stringMatching(one.remedy) })),
    )
    expect(look({ isRegistered: false })).toMatchObject([
      { level: 'fault', text: expect.stringContaining('waits since 2026-01-01T00:00:00.000Z for a container runtime') },
    ])
  })

  it.each([
    [
      'the runtime supports plugins',
      {},
      `the container runtime asks plugins (NRI, "${SOCKET}"); no "modekeep nri" runs`,
    ],
    ['no process listens', { isListening: false }, `no process listens at the NRI socket "${SOCKET}"`],
    ['there is no socket', { hasSocket: false }, `the container runtime has no NRI socket at "${SOCKET}", and no`],
  ])('reports no fault if no plugin was ever started, as the plugin is optional: %s', (_, node, text) => {
    expect(look(undefined, { isRunning: false, ...node })).toEqual([
      { level: 'ok', text: expect.stringContaining(text), remedy: '' },
    ])
  })
})
