import { quoted } from '../refusal/refusal.ts'
import type { NodeConfig } from './defaults.ts'
import { REMOTE_EXAMPLES, type Remote, remoteOf, type Source, sourceText } from './source.ts'

/** Faults of a source as the node's configuration allows sources. */
export function allowedFaults(source: Source, fsType: string, { allowedSources }: NodeConfig): string[] {
  // A program's text is allowed as such, whatever else it looks like.
  if (!('server' in source) || fsType.startsWith('fuse.')) {
    const text = sourceText(source) ?? ''
    if (allowedSources.some((entry) => holdsPath(entry, text) || holdsText(entry, text))) return []
    return [
      `option "source" is ${quoted(text)}: this node allows sources below ${allowedSources.join(', ') || 'no directory'}; ` +
        "its administrator can add a prefix to allowedSources in the node's modekeep configuration",
    ]
  }
  const entries = allowedSources.filter((entry) => remoteOf(entry, source.type) !== undefined)
  if (entries.some((entry) => holdsRemote(remoteOf(entry, source.type), source))) return []
  return [
    `option "source" is ${quoted(sourceText(source))}: this node allows ${fsType} from ${entries.join(', ') || 'no server'}; ` +
      `its administrator can add an entry like ${REMOTE_EXAMPLES[source.type]} to allowedSources in the node's modekeep configuration`,
  ]
}

/** By whole components: `/a` allows `/a/b`, not `/ab`; `user@host:/a` is a prefix of the same form. */
function holdsPath(entry: string, source: string): boolean {
  return entry === '/' ? source.startsWith('/') : isBelow(source, entry.replace(/\/$/, ''))
}

/** A bare name (`bucket`, `remote`, `user@host`) holds all that follows it after ":"; `remote:` all of the remote. */
function holdsText(entry: string, source: string): boolean {
  if (entry.startsWith('/')) return false
  if (entry.endsWith(':')) return source.startsWith(entry)
  return !/[/:]/.test(entry) && source.startsWith(`${entry}:`)
}

/** Names of servers are the same in capitals and small letters. */
function holdsRemote(entry: Remote | undefined, { server, path }: Remote): boolean {
  return entry?.server.toLowerCase() === server.toLowerCase() && isBelow(path, entry.path)
}

export function isBelow(path: string, prefix: string): boolean {
  return prefix === '/' || path === prefix || path.startsWith(`${prefix}/`)
}
