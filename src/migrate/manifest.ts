import {
  isAlias,
  isMap,
  isScalar,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  visit,
  type YAMLMap,
} from 'yaml'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { nodeFs, readFileHead } from '../kernel/read-file.ts'
import { getErrno } from '../kernel/system-error.ts'
import type { YamlMapEntry } from './edits.ts'

/** A map of a manifest that modekeep may rewrite. */
export interface ManifestMap {
  /** Line of its first key, from 1. */
  line: number
  /** Owner, as far as it is known: `Deployment "web", volume "data"`. */
  what: string
  map: YAMLMap
}

interface Manifest {
  /** Values of the key `flexVolume` anywhere in the manifest. */
  volumes: ManifestMap[]
  /** Objects of the kind Secret with a type. */
  secrets: ManifestMap[]
  /** Volumes written by aliases: a change would also change other parts of the manifest. */
  aliased: Pick<ManifestMap, 'line' | 'what'>[]
}

/**
 * Reads all documents of a text (YAML or JSON).
 * @throws {Refusal} that names line and column of a syntax error, but never the text there, which may be a secret
 */
export function readManifest(text: string, file: string): Manifest {
  const counter = new LineCounter()
  assertManifestParsable(text, file)
  const documents = parseAllDocuments(text, {
    lineCounter: counter,
    prettyErrors: false,
    version: '1.1',
    merge: false,
    // The parser's own check compares each key with every earlier one.
    uniqueKeys: false,
  })
  const faults = documents.flatMap(({ errors }) => errors)
  const [first] = faults
  if (first !== undefined) refuseSyntax(first.pos[0], first.code.toLowerCase().replaceAll('_', ' '))
  const manifest: Manifest = { volumes: [], secrets: [], aliased: [] }
  for (const document of documents) {
    visit(document, {
      Map(_key, map, path) {
        assertUniqueKeys(map)
        if (readScalar(findMapEntry(map, 'kind')) === 'Secret' && isScalar(findMapEntry(map, 'type')?.value)) {
          manifest.secrets.push({ line: findLine(map), what: formatVolumeOwner([...path, map]), map })
        }
      },
      Pair(_key, pair, path) {
        if (!isMapEntry(pair) || pair.key.value !== 'flexVolume') return
        const what = formatVolumeOwner(path)
        if (hasYamlAlias(pair.value)) manifest.aliased.push({ line: findLine(pair.key), what })
        else if (isMap(pair.value) && findMapEntry(pair.value, 'driver') !== undefined) {
          manifest.volumes.push({ line: findLine(pair.key), what, map: pair.value })
        }
      },
    })
  }
  return manifest

  function refuseSyntax(position: number, fault: string): never {
    const { line, col } = counter.linePos(position)
    throw Refusal.of(
      'command',
      `${file}, line ${line}, column ${col}, is not YAML (${fault})`,
      `mend it, or render a template first ("helm template")`,
    )
  }

  function assertUniqueKeys({ items }: YAMLMap): void {
    const keys = new Set<unknown>()
    for (const { key } of items) {
      if (!isScalar(key)) continue
      if (keys.has(key.value)) refuseSyntax(key.range?.[0] ?? 0, 'duplicate key')
      keys.add(key.value)
    }
  }

  function findLine(node: Node): number {
    return counter.linePos(node.range?.[0] ?? 0).line
  }
}

function hasYamlAlias(node: Node): boolean {
  let isFound = isAlias(node)
  visit(node, {
    Alias() {
      isFound = true
      return visit.BREAK
    },
  })
  return isFound
}

/** Returns the pair of a map with this key. */
export function findMapEntry(map: YAMLMap, key: string): YamlMapEntry | undefined {
  return map.items.filter(isMapEntry).find((pair) => pair.key.value === key)
}

/** Returns a scalar as its author wrote it; undefined: missing, or not a scalar. */
export function readScalar(entry: YamlMapEntry | undefined): string | undefined {
  if (!isScalar(entry?.value)) return undefined
  const { value, source } = entry.value
  return typeof value === 'string' ? value : value === null ? '' : (source ?? String(value))
}

export function isMapEntry(pair: Pair<unknown, unknown>): pair is YamlMapEntry {
  return isScalar(pair.key) && pair.value !== null && pair.value !== undefined
}

/** Returns the name in an object's metadata. */
export function readObjectName(object: YAMLMap): string | undefined {
  const metadata = findMapEntry(object, 'metadata')?.value
  return isMap(metadata) ? readScalar(findMapEntry(metadata, 'name')) : undefined
}

/** Formats the innermost object with a kind, and the name of the volume. */
function formatVolumeOwner(path: readonly unknown[]): string {
  const maps = path.filter((node) => isMap(node))
  const owner = maps.findLast((map) => findMapEntry(map, 'kind') !== undefined)
  const volume = maps.at(-1)
  const name = owner && readObjectName(owner)
  const parts = owner
    ? [`${readScalar(findMapEntry(owner, 'kind'))}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`]
    : []
  const volumeName = volume === owner || volume === undefined ? undefined : readScalar(findMapEntry(volume, 'name'))
  if (volumeName !== undefined) parts.push(`volume ${JSON.stringify(volumeName)}`)
  return parts.join(', ')
}

/** A manifest above these bounds is refused before it is parsed: the parser needs some 250 bytes of memory for each byte. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024
const MAX_MANIFEST_DOCUMENTS = 5000
export const MAX_MANIFEST_DEPTH = 200

/**
 * Refuses a text whose parsing would take disproportionate time or memory. Reads each character once.
 * @throws {Refusal} that names the bound and its value
 */
function assertManifestParsable(text: string, file: string): void {
  const documents = (text.match(/^---(?=\s|$)/gm)?.length ?? 0) + 1
  if (documents > MAX_MANIFEST_DOCUMENTS + 1) {
    throw Refusal.of('command', `${file} has more than ${MAX_MANIFEST_DOCUMENTS} documents`, `split it`)
  }
  if (isManifestTooDeep(text)) {
    throw Refusal.of(
      'command',
      `${file} nests values more than ${MAX_MANIFEST_DEPTH} deep`,
      `it is no manifest, name another file`,
    )
  }
}

/** Counts YAML's open flow collections, and block collections that begin on one line. Deeper blocks need longer lines, so the text's size limits them. */
function isManifestTooDeep(text: string): boolean {
  let flow = 0
  let onLine = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === '[' || lexeme === '{') flow++
    else if (lexeme === ']' || lexeme === '}') flow = Math.max(0, flow - 1)
    else if (lexeme === '-' || lexeme === '?' || lexeme === ':') onLine++
    else if (lexeme.startsWith('\n') || lexeme.startsWith('\r\n')) onLine = 0
    if (flow > MAX_MANIFEST_DEPTH || (flow === 0 && onLine > MAX_MANIFEST_DEPTH)) return true
  }
  return false
}

/** Reads a file, or `stdin` for "-". @throws {Refusal} if it is no text, or longer than a manifest may be */
export async function readManifestText(file: string, stdin: AsyncIterable<Buffer>): Promise<string> {
  const bytes = file === '-' ? await readManifestStream(stdin, file) : readManifestFile(file)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw Refusal.of('command', `file ${quoteValue(file)} is not UTF-8`, 'write it so')
  }
}

function readManifestFile(file: string): Buffer {
  try {
    return assertManifestSize(readFileHead(nodeFs, file, MAX_MANIFEST_BYTES + 1), file)
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    if (code === 'EINVAL') {
      throw Refusal.of('file-access', `file ${quoteValue(file)} is not a regular file`, `name one, or "-" for stdin`)
    }
    throw Refusal.of('file-access', `file ${quoteValue(file)} cannot be read (${code})`, 'name another')
  }
}

function assertManifestSize(bytes: Buffer, file: string): Buffer {
  if (bytes.length <= MAX_MANIFEST_BYTES) return bytes
  throw Refusal.of(
    'command',
    `file ${quoteValue(file)} has more than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`,
    'split it',
  )
}

async function readManifestStream(stream: AsyncIterable<Buffer>, file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    sizeBytes += chunk.length
    chunks.push(chunk)
    if (sizeBytes > MAX_MANIFEST_BYTES) break
  }
  return assertManifestSize(Buffer.concat(chunks), file)
}
