import { show } from '../../refusal/refusal.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import type { KindRequest } from '../../request/request.ts'
import { isBelow } from '../kind/source-path.ts'

interface Place {
  server: string
  /** Absolute, on the server. */
  path: string
}

/** How a kind writes what a server has. */
export interface RemoteForm {
  example: string
  /** Undefined for any other text. */
  place(text: string): Place | undefined
}

// A comma would begin a mount option; a backslash is a slash to a CIFS server.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const PATH = /^(\/|(\/(?!\.\.?(\/|$))[^/\\,\x00-\x1f\x7f]+)+)$/

/** host:/export, an IPv6 address in brackets. */
export const EXPORT: RemoteForm = {
  example: 'host:/export',
  place(text) {
    const parts = /^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\]):(.+)$/s.exec(text)
    return placeOf(parts?.[1], parts?.[2])
  },
}

/** //server/share, with or without directories in it. */
export const SHARE: RemoteForm = {
  example: '//server/share',
  place(text) {
    const parts = /^\/\/([A-Za-z0-9:][A-Za-z0-9._:-]*)(\/.+)?$/s.exec(text)
    return placeOf(parts?.[1], parts?.[2] ?? '/')
  },
}

function placeOf(server: string | undefined, path = ''): Place | undefined {
  // Names of servers are the same in capitals and small letters.
  return server !== undefined && PATH.test(path) ? { server: server.toLowerCase(), path } : undefined
}

/** Faults of a source on a server. Only entries of allowedSources in the same form allow it, by whole names. */
export function remoteFaults({ source, subPath, fsType }: KindRequest, form: RemoteForm, config: NodeConfig): string[] {
  const faults: string[] = []
  if (subPath !== undefined) {
    faults.push(`option "subPath" is ${show(subPath)}: of ${fsType} the source names the directory, add it there`)
  }
  const place = form.place(source)
  // A server alone has no directory to mount.
  if (place === undefined || (form === SHARE && place.path === '/')) {
    const what = source === '' ? 'is missing' : `is ${show(source)}`
    return [...faults, `option "source" ${what}: write it like ${form.example}, without "..", "." or a comma`]
  }
  const allowed = config.allowedSources.filter((entry) => form.place(entry) !== undefined)
  if (allowed.some((entry) => holds(form.place(entry), place))) return faults
  return [
    ...faults,
    `option "source" is ${show(source)}: this node allows ${fsType} from ${allowed.join(', ') || 'no server'}; ` +
      `its administrator can add an entry like ${form.example} to allowedSources in the node's modekeep configuration`,
  ]
}

function holds(entry: Place | undefined, { server, path }: Place): boolean {
  return entry !== undefined && entry.server === server && isBelow(path, entry.path)
}
