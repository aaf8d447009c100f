import { quoted } from '../../refusal/refusal.ts'
import type { Store } from '../../store/places.ts'
import { pluginRecord, runningPlugin, whyNotAsked } from '../../store/plugin-record.ts'
import { type Found, fault, ok, warning } from './findings.ts'

const ENABLE =
  'enable NRI in its configuration and restart it: containerd before 2.0 has [plugins."io.containerd.nri.v1.nri"] with disable = true, ' +
  'CRI-O enable_nri in [crio.nri] (docs/any-volume.md)'

/** Only where a plugin of modekeep's is at work, or was when it or the node ended by force. */
export function* runtimeFindings(store: Store): Generator<Found> {
  const { record, problem } = pluginRecord.find(store, undefined)
  if (problem !== undefined) yield warning(problem.message, 'start "modekeep nri" again, which writes it anew')
  if (record === undefined) return
  const plugin = runningPlugin(store)
  if (plugin === undefined) {
    const since = new Date(record.since).toISOString()
    const text = `"modekeep nri" was at work on this node (${since}) and is not any more: containers are created without the group that they ask for`
    yield fault(text, 'start it; modekeep status has the containers')
  } else if (plugin.isRegistered) {
    yield ok(`the container runtime (${plugin.runtime}) asks "modekeep nri"`)
  } else if (store.host.files.stat(plugin.socket) === undefined) {
    yield fault(`the container runtime has no NRI socket at ${quoted(plugin.socket)}`, ENABLE)
  } else {
    yield fault(whyNotAsked(plugin) ?? '', `see why in the runtime's log; ${ENABLE}`)
  }
}
