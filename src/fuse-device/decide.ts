import { type BackOff, pause } from '../host/back-off.ts'

/** What is seen of the socket directory. A detached one was removed under a bind mount: nothing can appear in it. */
export interface ObservedSockets {
  readonly directory: 'present' | 'absent' | 'detached'
  /** Which socket kubelet.sock is now: another after each restart. */
  readonly kubelet: string | undefined
  /** The plugin's own socket is where it was made. */
  readonly own: boolean
}

export interface PluginState {
  readonly serving: boolean
  /** The kubelet socket that is being asked, and the one that said yes. */
  readonly asking: string | undefined
  readonly registered: string | undefined
  /** Streams on which kubelet watches the devices, and since when there is none; ms. */
  readonly watchers: number
  readonly unwatchedSince: number
  /** Failures in a row to listen or register while kubelet's socket was the one named. */
  readonly failed: { readonly kubelet: string; readonly times: number; readonly retryAt: number } | undefined
}

export type PluginAction =
  | { readonly do: 'listen' | 'register'; readonly kubelet: string }
  | { readonly do: 'abandon' | 'close' | 'give-up' }
  | { readonly do: 'wait'; readonly until: number }

export type PluginEvent =
  | { readonly type: 'listening' | 'closed' | 'abandoned' }
  | { readonly type: 'asking' | 'registered' | 'failed'; readonly kubelet: string }
  | { readonly type: 'watchers'; readonly count: number }

export const INITIAL_STATE: PluginState = {
  serving: false,
  asking: undefined,
  registered: undefined,
  watchers: 0,
  unwatchedSince: 0,
  failed: undefined,
}

/**
 * The next thing to do. Decided from what is there, never from how it came about: a missed change is made up for.
 * @param graceMs how long kubelet may take, after it accepted a registration, until it watches
 */
export function decideAction(state: PluginState, view: ObservedSockets, now: number, graceMs: number): PluginAction {
  if (view.directory === 'detached') return { do: 'give-up' }
  // Kubelet empties the directory when it starts.
  if (state.serving && !view.own) return { do: 'close' }
  if (view.kubelet === undefined) return { do: 'wait', until: Number.POSITIVE_INFINITY }
  if (state.asking !== undefined) {
    return state.asking === view.kubelet ? { do: 'wait', until: Number.POSITIVE_INFINITY } : { do: 'abandon' }
  }
  if (state.registered === view.kubelet) {
    // Kubelet dials back once, later, and says nothing when that fails: without a watcher it does not know the plugin.
    const until = state.watchers > 0 ? Number.POSITIVE_INFINITY : state.unwatchedSince + graceMs
    if (now < until) return { do: 'wait', until }
  }
  const { failed } = state
  if (failed?.kubelet === view.kubelet && now < failed.retryAt) return { do: 'wait', until: failed.retryAt }
  return { do: state.serving ? 'register' : 'listen', kubelet: view.kubelet }
}

/** @param random in [0, 1) */
export function applyEvent(
  state: PluginState,
  event: PluginEvent,
  now: number,
  random: number,
  backOff: BackOff,
): PluginState {
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
      const retryAt = now + pause(backOff, times, random)
      return { ...state, asking: undefined, failed: { kubelet: event.kubelet, times, retryAt } }
    }
    case 'watchers':
      return { ...state, watchers: event.count, unwatchedSince: event.count === 0 ? now : state.unwatchedSince }
  }
}
