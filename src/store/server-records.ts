import * as z from 'zod/mini'
import { quoted } from '../errors/refusal.ts'
import type { Cursor } from '../log/log-reader.ts'
import { isNodeLocked } from './lock-holders.ts'
import { RecordKind } from './record.ts'
import type { Store } from './record-directories.ts'

const schema = () =>
  z.object({
    /** The container runtime calls the plugin. */
    isRegistered: z.boolean(),
    /** The runtime's name and version, such as `containerd v2.1.9`; '' if no runtime has connected yet. */
    runtime: z.string(),
    /** The runtime's version of NRI, if it reports one. */
    nri: z.optional(z.string()),
    /** Beginning of this state, in milliseconds since 1970. */
    since: z.number(),
    /** NRI socket of the runtime. */
    socket: z.string(),
  })

/** Default path of a runtime's NRI socket. */
export const NRI_SOCKET = '/var/run/nri/nri.sock'

/** State that the runtime's plugin reports to operators. */
export type PluginRecord = z.infer<ReturnType<typeof schema>>

export const pluginRecord = new RecordKind<PluginRecord, undefined>({
  format: 1,
  schema,
  ownerOf: () => undefined,
  directoryOf: ({ config }) => config.stateDir,
  name: 'nri-plugin.json',
})

/** Returns the state of the running plugin; undefined if none runs. */
export function findRunningPlugin(store: Store): PluginRecord | undefined {
  return isNodeLocked(store, 'nri') ? pluginRecord.find(store, undefined).record : undefined
}

/** Explains why containers are created without the plugin; returns undefined if the runtime calls it. */
export function explainInactivePlugin(plugin: PluginRecord | undefined): string | undefined {
  if (plugin === undefined) return 'no "modekeep nri" runs on this node: start it'
  if (plugin.isRegistered) return undefined
  const since = new Date(plugin.since).toISOString()
  return `"modekeep nri" waits since ${since} for a container runtime at ${quoted(plugin.socket)}: start it, with NRI enabled`
}

/** The counters, and the position in the log up to which they count. One file has both, so that they agree. */
export const metricsRecord = new RecordKind<{ cursor: Cursor; totals: Readonly<Record<string, number>> }, undefined>({
  format: 1,
  schema: () =>
    z.object({
      /** Position up to which the log was read. */
      cursor: z.array(z.object({ head: z.string(), offset: z.number() })),
      /** Total of each series up to that position. */
      totals: z.record(z.string(), z.number()),
    }),
  ownerOf: () => undefined,
  directoryOf: ({ config }) => config.stateDir,
  name: 'metrics.json',
})
