import { escapeUnprintable } from '../../errors/escape.ts'
import { formatError } from '../../errors/refusal.ts'
import { resolveWithinTimeout } from '../../kernel/waiting.ts'
import { createTarArchive } from '../output/tar.ts'
import { redactText } from './redact.ts'

/** One file of a bundle. Its secrets are redacted. */
export interface BundleFile {
  /** Path in the bundle. */
  path: string
  /** The file or the command that it was read from. */
  source: string
  text: string
  /** Only a part of the source is in it. */
  isCut?: boolean
}

/** A source that could not be read, or the number of its files that are left out. */
export type PartProblem = { source: string; error: unknown } | { source: string; leftOut: number }

/** A part of a bundle. Parts are read one after the other, and a part that fails does not stop the others. */
export interface BundlePart {
  source: string
  read(): Iterable<BundleFile | PartProblem> | Promise<Iterable<BundleFile | PartProblem>>
}

export interface CollectedBundle {
  files: BundleFile[]
  /** Sources that could not be read, completely or at all. */
  errors: { source: string; error: string }[]
  /** Sources of which the limits left out files. */
  limits: { source: string; leftOut: number }[]
}

/** Longer than the checks of doctor take on a node with many volumes that hang. */
const PART_TIMEOUT_MS = 120_000

/** Reads all parts, each within a time limit. */
export async function collectBundle(
  parts: readonly BundlePart[],
  timeoutMs = PART_TIMEOUT_MS,
): Promise<CollectedBundle> {
  const bundle: CollectedBundle = { files: [], errors: [], limits: [] }
  const addError = (source: string, error: unknown) =>
    bundle.errors.push({ source, error: redactText(escapeUnprintable(formatError(error))) })
  for (const { source, read } of parts) {
    const result = (await resolveWithinTimeout(timeoutMs, settlePart(read))) ?? {
      found: [],
      error: new Error(`no result within ${timeoutMs / 1000} s`),
    }
    for (const found of result.found) {
      if ('path' in found) bundle.files.push(found)
      else if ('leftOut' in found) bundle.limits.push(found)
      else addError(found.source, found.error)
    }
    if ('error' in result) addError(source, result.error)
  }
  return bundle
}

/** Keeps what was read before an error. Never rejects. */
async function settlePart(read: BundlePart['read']): Promise<{ found: (BundleFile | PartProblem)[]; error?: unknown }> {
  const found: (BundleFile | PartProblem)[] = []
  try {
    for (const one of await read()) found.push(one)
    return { found }
  } catch (error) {
    return { found, error }
  }
}

/** A file as its archive has it. */
export interface ArchivedFile {
  path: string
  source: string
  bytes: number
  isCut: boolean
}

/** Adds the list of files, and the errors if there are any, and makes the archive. Its files are below `directory`. */
export function archiveBundle(
  { files, errors, limits }: CollectedBundle,
  directory: string,
  seconds: number,
): { archive: Uint8Array; files: ArchivedFile[] } {
  const lines = [
    ...errors.map(({ source, error }) => `${escapeUnprintable(source)}: ${error}\n`),
    ...limits.map(({ source, leftOut }) => `${escapeUnprintable(source)}: ${leftOut} files are left out\n`),
  ]
  const all = lines.length === 0 ? files : [...files, { path: 'errors.txt', source: '', text: lines.join('') }]
  const contents = all.map((file) => ({ ...file, content: Buffer.from(file.text) }))
  const listed = contents.map(({ path, source, content, isCut = false }) => ({
    path,
    source,
    bytes: content.length,
    isCut,
  }))
  const list = Buffer.from(`${JSON.stringify({ files: listed, limits })}\n`)
  const archive = createTarArchive(
    [{ path: 'contents.json', content: list }, ...contents].map(({ path, content }) => ({
      path: `${directory}/${path}`,
      bytes: content,
      mode: 0o600,
    })),
    seconds,
  )
  return { archive, files: [{ path: 'contents.json', source: '', bytes: list.length, isCut: false }, ...listed] }
}
