import { type BackOffLimits, computeBackOffPauseMs } from '../../kernel/waiting.ts'

/** State of the socket directory. A detached one was removed under a bind mount, and no file can be created in it. */
export interface ObservedPluginSockets {
  readonly directory: 'present' | 'absent' | 'detached'
  /** Identity of kubelet.sock, which changes with each restart of kubelet. */
  readonly kubelet: string | undefined
  /** Whether the plugin's own socket still exists. */
  readonly own: boolean
}

export interface DevicePluginState {
  readonly serving: boolean
  /** Kubelet socket at which a registration is pending. */
  readonly asking: string | undefined
  /** Kubelet socket at which the plugin is registered. */
  readonly registered: string | undefined
  /** Number of streams on which kubelet watches the devices. */
  readonly watchers: number
  /** Time in milliseconds since which there is no watcher. */
  readonly unwatchedSince: number
  /** Consecutive failures to listen or register with this kubelet socket. */
  readonly failed: { readonly kubelet: string; readonly times: number; readonly retryAt: number } | undefined
}

export type DevicePluginAction =
  | { readonly do: 'listen' | 'register'; readonly kubelet: string }
  | { readonly do: 'abandon' | 'close' | 'give-up' }
  | { readonly do: 'wait'; readonly until: number }

export type DevicePluginEvent =
  | { readonly type: 'listening' | 'closed' | 'abandoned' }
  | { readonly type: 'asking' | 'registered' | 'failed'; readonly kubelet: string }
  | { readonly type: 'watchers'; readonly count: number }

export const INITIAL_DEVICE_PLUGIN_STATE: DevicePluginState = {
  serving: false,
  asking: undefined,
  registered: undefined,
  watchers: 0,
  unwatchedSince: 0,
  failed: undefined,
}

/**
 * Decides the next action from the current state alone, so that missed events have no effect.
 * @param graceMs time limit for kubelet to watch the devices after it accepted a registration
 */
export function decideDevicePluginAction(
  state: DevicePluginState,
  observed: ObservedPluginSockets,
  now: number,
  graceMs: number,
): DevicePluginAction {
  if (observed.directory === 'detached') return { do: 'give-up' }
  // Kubelet empties the directory when it starts.
  if (state.serving && !observed.own) return { do: 'close' }
  if (observed.kubelet === undefined) return { do: 'wait', until: Number.POSITIVE_INFINITY }
  if (state.asking !== undefined) {
    return state.asking === observed.kubelet ? { do: 'wait', until: Number.POSITIVE_INFINITY } : { do: 'abandon' }
  }
  if (state.registered === observed.kubelet) {
    // Kubelet connects back once, later, and reports no failure of it. Without a watcher the registration has failed.
    const until = state.watchers > 0 ? Number.POSITIVE_INFINITY : state.unwatchedSince + graceMs
    if (now < until) return { do: 'wait', until }
  }
  const { failed } = state
  if (failed?.kubelet === observed.kubelet && now < failed.retryAt) return { do: 'wait', until: failed.retryAt }
  return { do: state.serving ? 'register' : 'listen', kubelet: observed.kubelet }
}

/** @param random in [0, 1) */
export function applyDevicePluginEvent(
  state: DevicePluginState,
  event: DevicePluginEvent,
  now: number,
  random: number,
  backOff: BackOffLimits,
): DevicePluginState {
  switch (event.type) {
    case 'listening':
      return { ...state, serving: true, watchers: 0 }
    case 'closed':
      return { ...state, serving: false, asking: undefined, registered: undefined, watchers: 0 }
    case 'asking':
      return { ...state, asking: event.kubelet, registered: undefined }
    case 'abandoned':
      return { ...state, asking: undefined }
    case 'registered':
      return { ...state, asking: undefined, registered: event.kubelet, unwatchedSince: now, failed: undefined }
    case 'failed': {
      const times = state.failed?.kubelet === event.kubelet ? state.failed.times + 1 : 1
      const retryAt = now + computeBackOffPauseMs(backOff, times, random)
      return { ...state, asking: undefined, failed: { kubelet: event.kubelet, times, retryAt } }
    }
    case 'watchers':
      return { ...state, watchers: event.count, unwatchedSince: event.count === 0 ? now : state.unwatchedSince }
  }
}

export const FUSE_DEVICE_PATH = '/dev/fuse'

/** Read and write permission of other users. */
const OTHERS_READ_WRITE_MODE = 0o006

/**
 * Explains why only root can open the device. Containers get it with the node's mode, owned by root. The mode is checked,
 * because the plugin runs as root and can always open the device.
 * @returns undefined if every user can open it
 */
export function explainRootOnlyDevice(device: string, mode: number): string | undefined {
  if ((mode & OTHERS_READ_WRITE_MODE) === OTHERS_READ_WRITE_MODE) return undefined
  const shown = (mode & 0o7777).toString(8).padStart(4, '0')
  return `${device} has mode ${shown}, and containers get it so: a pod that is not root, or that has hostUsers: false, cannot open it`
}
