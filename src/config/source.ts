import * as z from 'zod/mini'

/** The source of a volume as the pod's author wrote it. The node was not accessed. */
export const createVolumeSourceSchema = () =>
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('none') }),
    /** A path on the node: a directory or a file, an image file, a block device below /dev. */
    z.object({ type: z.enum(['local', 'image', 'device']), path: z.string() }),
    /** host:/directory, and //server/share with optional directories. The path is absolute, on the server. */
    z.object({ type: z.enum(['export', 'share']), server: z.string(), path: z.string() }),
    /** A source that only a program interprets. */
    z.object({ type: z.literal('text'), text: z.string() }),
  ])

export type VolumeSource = z.infer<ReturnType<typeof createVolumeSourceSchema>>

export const REMOTE_SOURCE_EXAMPLES = { export: 'host:/export', share: '//server/share' } as const

export interface RemoteSource {
  server: string
  path: string
}

// A comma would begin a mount option; a backslash is a slash to a CIFS server.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const REMOTE_PATH_PATTERN = /^(\/|(\/(?!\.\.?(\/|$))[^/\\,\x00-\x1f\x7f]+)+)$/
const NFS_EXPORT_PATTERN = /^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\]):(.+)$/s
const SMB_SHARE_PATTERN = /^\/\/([A-Za-z0-9:][A-Za-z0-9._:-]*)(\/.+)?$/s

/** @returns undefined for a text of another form; a server alone has the path "/" */
export function parseRemoteSource(text: string, type: 'export' | 'share'): RemoteSource | undefined {
  const [, server, path = '/'] = (type === 'export' ? NFS_EXPORT_PATTERN : SMB_SHARE_PATTERN).exec(text) ?? []
  return server !== undefined && REMOTE_PATH_PATTERN.test(path) ? { server, path } : undefined
}

/**
 * Parses the form of a source. Its kind of volume decides whether that form is accepted and valid.
 * @param isDisk its kind mounts file systems from devices and images
 */
export function parseSource(text: string | undefined, isDisk = false): VolumeSource {
  if (text === undefined || text === '') return { type: 'none' }
  const share = parseRemoteSource(text, 'share')
  // A server alone has no directory to mount.
  if (share !== undefined && share.path !== '/') return { type: 'share', ...share }
  if (text.startsWith('/')) {
    return { type: !isDisk ? 'local' : text.startsWith('/dev/') ? 'device' : 'image', path: text }
  }
  const exported = parseRemoteSource(text, 'export')
  return exported === undefined ? { type: 'text', text } : { type: 'export', ...exported }
}

/** Formats a source as its author wrote it; undefined: none. */
export function formatSource(source: VolumeSource): string | undefined {
  if (source.type === 'export') return `${source.server}:${source.path}`
  if (source.type === 'share') return `//${source.server}${source.path}`
  return source.type === 'text' ? source.text : getSourcePath(source)
}

/** Returns the source's path on this node; undefined for other sources. */
export function getSourcePath(source: VolumeSource): string | undefined {
  return source.type === 'local' || source.type === 'image' || source.type === 'device' ? source.path : undefined
}
