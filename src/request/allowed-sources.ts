import { quoted } from '../refusal/refusal.ts'
import type { NodeConfig } from './defaults.ts'
import { type Remote, remoteOf, type Source, sourceText } from './source.ts'

const REMOTE_EXAMPLES = { export: 'host:/export', share: '//server/share' } as const

/** Faults of a source as the node's configuration allows sources. */
export function allowedFaults(source: Source, fsType: string, { allowedSources }: NodeConfig): string[] {
  const remote = source.type === 'export' || source.type === 'share' ? source.type : undefined
  // A program's text is allowed as such, whatever else it looks like.
  if (remote === undefined || fsType.startsWith('fuse.')) {
    const text = sourceText(source) ?? ''
    if (allowedSources.some((entry) => holdsPath(entry, text) || holdsText(entry, text))) return []
    return [
      `option "source" is ${quoted(text)}: this node allows sources below ${allowedSources.join(', ') || 'no directory'}; ` +
        "its administrator can add a prefix to allowedSources in the node's modekeep configuration",
    ]
  }
  const entries = allowedSources.filter((entry) => remoteOf(entry, remote) !== undefined)
  if (entries.some((entry) => holdsRemote(remoteOf(entry, remote), source as Extract<Source, Remote>))) return []
  return [
    `option "source" is ${quoted(sourceText(source))}: this node allows ${fsType} from ${entries.join(', ') || 'no server'}; ` +
      `its administrator can add an entry like ${REMOTE_EXAMPLES[remote]} to allowedSources in the node's modekeep configuration`,
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
