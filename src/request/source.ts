import * as z from 'zod/mini'

/** What a pod's author names as the source of a volume. Texts are as they were written; nothing was looked at. */
export const sourceSchema = () =>
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('none') }),
    /** Of the node: a directory or a file, a file with a file system in it, a block device below /dev. */
    z.object({ type: z.enum(['local', 'image', 'device']), path: z.string() }),
    /** host:/directory, and //server/share with or without directories in it. The path is absolute, on the server. */
    z.object({ type: z.enum(['export', 'share']), server: z.string(), path: z.string() }),
    /** What only a program understands. */
    z.object({ type: z.literal('text'), text: z.string() }),
  ])

export type Source = z.infer<ReturnType<typeof sourceSchema>>

/** What a server's directories are written like. */
export const REMOTE_EXAMPLES = { export: 'host:/export', share: '//server/share' } as const

/** What a server has. */
export interface Remote {
  server: string
  path: string
}

// A comma would begin a mount option; a backslash is a slash to a CIFS server.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const PATH = /^(\/|(\/(?!\.\.?(\/|$))[^/\\,\x00-\x1f\x7f]+)+)$/
const EXPORT = /^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\]):(.+)$/s
const SHARE = /^\/\/([A-Za-z0-9:][A-Za-z0-9._:-]*)(\/.+)?$/s

/** @returns undefined for what has another form; a server alone has the path "/" */
export function remoteOf(text: string, type: 'export' | 'share'): Remote | undefined {
  const [, server, path = '/'] = (type === 'export' ? EXPORT : SHARE).exec(text) ?? []
  return server !== undefined && PATH.test(path) ? { server, path } : undefined
}

/**
 * Which form a text has; whether its kind of volume takes that, and whether it is well written, is the kind's to say.
 * @param isDisk its kind mounts file systems from devices and images
 */
export function parseSource(text: string | undefined, isDisk = false): Source {
  if (text === undefined || text === '') return { type: 'none' }
  const share = remoteOf(text, 'share')
  // A server alone has no directory to mount.
  if (share !== undefined && share.path !== '/') return { type: 'share', ...share }
  if (text.startsWith('/')) {
    return { type: !isDisk ? 'local' : text.startsWith('/dev/') ? 'device' : 'image', path: text }
  }
  const exported = remoteOf(text, 'export')
  return exported === undefined ? { type: 'text', text } : { type: 'export', ...exported }
}

/** A source as its author wrote it; undefined where there is none. */
export function sourceText(source: Source): string | undefined {
  if (source.type === 'export') return `${source.server}:${source.path}`
  if (source.type === 'share') return `//${source.server}${source.path}`
  return source.type === 'text' ? source.text : sourcePath(source)
}

/** The path on this node that a source is; undefined for all others. */
export function sourcePath(source: Source): string | undefined {
  return source.type === 'local' || source.type === 'image' || source.type === 'device' ? source.path : undefined
}
