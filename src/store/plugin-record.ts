import * as z from 'zod/mini'
import { quoted } from '../refusal/refusal.ts'
import type { Store } from './places.ts'
import { RecordKind } from './record.ts'

const schema = () =>
  z.object({
    /** The container runtime asks it. */
    isRegistered: z.boolean(),
    /** The runtime's name and version, such as `containerd v2.1.9`; '' where none was there yet. */
    runtime: z.string(),
    /** The runtime's version of NRI, where it tells it. */
    nri: z.optional(z.string()),
    /** Milliseconds since 1970: since when that is so. */
    since: z.number(),
    /** The runtime's. */
    socket: z.string(),
  })

/** Where runtimes have it unless told otherwise. */
export const NRI_SOCKET = '/var/run/nri/nri.sock'

/** What the runtime's plugin tells of itself, for who looks at the node. */
export type PluginRecord = z.infer<ReturnType<typeof schema>>

export const pluginRecord = new RecordKind<PluginRecord, undefined>({
  format: 1,
  schema,
  ownerOf: () => undefined,
  directoryOf: ({ config }) => config.stateDir,
  name: 'nri-plugin.json',
})

/** What the plugin tells; undefined where none runs. */
export function runningPlugin(store: Store): PluginRecord | undefined {
  const lock = `${store.config.stateDir}/nri.lock`
  if (!store.host.files.has(lock) || !store.host.isLocked(lock)) return undefined
  return pluginRecord.find(store, undefined).record
}

/** Why containers are created without the plugin, in words; undefined where it is asked. */
export function whyNotAsked(plugin: PluginRecord | undefined): string | undefined {
  if (plugin === undefined) return 'no "modekeep nri" runs on this node: start it'
  if (plugin.isRegistered) return undefined
  const since = new Date(plugin.since).toISOString()
  return `"modekeep nri" waits since ${since} for a container runtime at ${quoted(plugin.socket)}: start it, with NRI enabled`
}
