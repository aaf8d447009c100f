import { describe, expect, it } from 'vitest'
import { runtimeFindings } from '../../../src/operator/doctor/runtime.ts'
import { DEFAULT_CONFIG } from '../../../src/request/defaults.ts'
import { tryLockNode } from '../../../src/store/locks.ts'
import { type PluginRecord, pluginRecord } from '../../../src/store/plugin-record.ts'
import { memoryStage } from '../../helpers/stage.ts'

const SOCKET = '/run/nri/nri.sock'

function look(record: Partial<PluginRecord> | undefined, { isRunning = true, hasSocket = true } = {}) {
  const { host, fs } = memoryStage()
  const store = { host, config: DEFAULT_CONFIG }
  fs.mkdirSync('/run/nri', { recursive: true })
  if (hasSocket) fs.writeFileSync(SOCKET, '')
  const whole = { isRegistered: true, runtime: 'containerd v2.1.9', since: Date.parse('2026-01-01'), socket: SOCKET }
  if (record !== undefined) pluginRecord.write(store, { ...whole, ...record })
  using _ = isRunning ? tryLockNode(store, 'nri') : undefined
  return [...runtimeFindings(store)]
}

describe('what doctor says of the container runtime', () => {
  it('is well where it asks the plugin, with its version', () => {
    expect(look({})).toEqual([
      { level: 'ok', text: 'the container runtime (containerd v2.1.9) asks "modekeep nri"', remedy: '' },
    ])
  })

  it('is a fault where the plugin has ended, and containers are created without it', () => {
    expect(look({}, { isRunning: false })).toMatchObject([
      { level: 'fault', text: expect.stringContaining('was at work on this node (2026-01-01T00:00:00.000Z)') },
    ])
  })

  it('is a fault without a socket, with how NRI is enabled, and with one that does not answer', () => {
    expect(look({ isRegistered: false }, { hasSocket: false })).toMatchObject(
      [
        { level: 'fault', text: `the container runtime has no NRI socket at "${SOCKET}"`, remedy: /disable = true/ },
      ].map((one) => ({ ...one, remedy: expect.stringMatching(one.remedy) })),
    )
    expect(look({ isRegistered: false })).toMatchObject([
      { level: 'fault', text: expect.stringContaining('waits since 2026-01-01T00:00:00.000Z for a container runtime') },
    ])
  })

  it('is nothing where no plugin was ever started', () => {
    expect(look(undefined, { isRunning: false })).toEqual([])
  })
})
