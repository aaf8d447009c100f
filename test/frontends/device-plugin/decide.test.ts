import { describe, expect, it } from 'vitest'
import {
  applyDevicePluginEvent,
  type DevicePluginEvent,
  type DevicePluginState,
  decideDevicePluginAction,
  INITIAL_DEVICE_PLUGIN_STATE,
  type ObservedPluginSockets,
} from '../../../src/frontends/device-plugin/decide.ts'

const BACK_OFF = { firstMs: 500, mostMs: 30_000 }
const GRACE = 30_000
const FOREVER = { do: 'wait', until: Number.POSITIVE_INFINITY }
const NOTHING: ObservedPluginSockets = { directory: 'present', kubelet: undefined, own: false }
const KUBELET: ObservedPluginSockets = { ...NOTHING, kubelet: 'A' }
const SERVING: ObservedPluginSockets = { ...KUBELET, own: true }

const given = (events: readonly DevicePluginEvent[], now = 0): DevicePluginState =>
  events.reduce((state, event) => applyDevicePluginEvent(state, event, now, 0, BACK_OFF), INITIAL_DEVICE_PLUGIN_STATE)
const serving: DevicePluginEvent = { type: 'listening' }
const asking: DevicePluginEvent = { type: 'asking', kubelet: 'A' }
const registered: DevicePluginEvent = { type: 'registered', kubelet: 'A' }
const watched: DevicePluginEvent = { type: 'watchers', count: 1 }
const failed: DevicePluginEvent = { type: 'failed', kubelet: 'A' }

const CASES: [
  promise: string,
  events: readonly DevicePluginEvent[],
  view: ObservedPluginSockets,
  now: number,
  action: object,
][] = [
  ['without kubelet it waits', [], NOTHING, 0, FOREVER],
  ['without the directory it waits', [], { ...NOTHING, directory: 'absent' }, 0, FOREVER],
  ['it listens first', [], KUBELET, 0, { do: 'listen', kubelet: 'A' }],
  ['it registers when it listens', [serving], SERVING, 0, { do: 'register', kubelet: 'A' }],
  ['it waits for the answer', [serving, asking], SERVING, 1e9, FOREVER],
  [
    'it deregisters from a kubelet that was replaced',
    [serving, asking],
    { ...SERVING, kubelet: 'B' },
    0,
    { do: 'abandon' },
  ],
  ['it waits for a watch', [serving, asking, registered], SERVING, 29_999, { do: 'wait', until: 30_000 }],
  [
    'it registers again if no kubelet watches',
    [serving, registered],
    SERVING,
    30_000,
    { do: 'register', kubelet: 'A' },
  ],
  ['it is idle while a kubelet watches', [serving, watched, registered], SERVING, 1e9, FOREVER],
  [
    'it registers with the next kubelet, also while the last one still watches',
    [serving, watched, registered],
    { ...SERVING, kubelet: 'B' },
    0,
    { do: 'register', kubelet: 'B' },
  ],
  ['it closes a deleted socket', [serving, watched, registered], KUBELET, 0, { do: 'close' }],
  ['it closes a deleted socket, also without kubelet', [serving], NOTHING, 0, { do: 'close' }],
  ['it closes a deleted socket, also during a registration', [serving, asking], KUBELET, 0, { do: 'close' }],
  ['it pauses after a failure', [serving, failed], SERVING, 249, { do: 'wait', until: 250 }],
  ['it tries again after the pause', [serving, failed], SERVING, 250, { do: 'register', kubelet: 'A' }],
  ['it pauses when it cannot listen', [failed], KUBELET, 249, { do: 'wait', until: 250 }],
  ['a new kubelet ends the pause', [failed, failed], { ...KUBELET, kubelet: 'B' }, 0, { do: 'listen', kubelet: 'B' }],
  [
    'it ends if its directory was detached',
    [serving, watched],
    { ...SERVING, directory: 'detached' },
    0,
    { do: 'give-up' },
  ],
]

describe("the device plugin's next action", () => {
  it.each(CASES)('%s', (_promise, events, view, now, action) => {
    expect(decideDevicePluginAction(given(events), view, now, GRACE)).toEqual(action)
  })

  it('has a retry delay that counts the failures since the last success with the same kubelet', () => {
    expect(given([failed, failed, failed]).failed?.times).toBe(3)
    expect(given([failed, failed, { type: 'failed', kubelet: 'B' }]).failed?.times).toBe(1)
    expect(given([failed, failed, registered, failed]).failed?.times).toBe(1)
  })

  it('is to wait, from any state, if kubelet replies and nothing else changes', () => {
    const starts = CASES.map(([, events]) => given(events))
    for (const start of starts.filter(({ asking }) => asking === undefined)) {
      let state = start
      let now = 0
      for (let step = 0; step < 10; step++) {
        const action = decideDevicePluginAction(state, { ...SERVING, own: state.serving }, now, GRACE)
        if (action.do === 'wait' && action.until === Number.POSITIVE_INFINITY) break
        if (action.do === 'wait') now = action.until
        if (action.do === 'listen') state = applyDevicePluginEvent(state, serving, now, 0, BACK_OFF)
        if (action.do === 'register') {
          for (const event of [asking, watched, registered])
            state = applyDevicePluginEvent(state, event, now, 0, BACK_OFF)
        }
      }
      expect(state).toMatchObject({ serving: true, registered: 'A', watchers: 1 })
    }
  })
})
