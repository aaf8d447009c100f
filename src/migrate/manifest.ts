import {
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  visit,
  type YAMLMap,
} from 'yaml'
import { Refusal } from '../refusal/refusal.ts'
import { assertParsable } from './bounds.ts'
import type { Entry } from './edits.ts'

/** A map of a manifest that modekeep may rewrite. */
export interface Found {
  /** Of its first key, from 1. */
  line: number
  /** `Deployment "web", volume "data"`, as far as it is known. */
  what: string
  map: YAMLMap
}

export interface Manifest {
  /** Values of the key `flexVolume`, wherever it stands. */
  volumes: Found[]
  /** Objects of the kind Secret that name a type. */
  secrets: Found[]
  /** Where a flexVolume is written by aliases, so that other places would change with it. */
  unread: Pick<Found, 'line' | 'what'>[]
}

/**
 * Reads all documents of a text (YAML or JSON).
 * @throws {Refusal} naming line and column where it is not YAML; never what stands there, which may be a secret
 */
export function readManifest(text: string, file: string): Manifest {
  const counter = new LineCounter()
  assertParsable(text, file)
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
  if (first !== undefined) refuse(first.pos[0], first.code.toLowerCase().replaceAll('_', ' '))
  const found: Manifest = { volumes: [], secrets: [], unread: [] }
  for (const document of documents) {
    visit(document, {
      Map(_key, map, path) {
        assertUniqueKeys(map)
        if (textOf(entryOf(map, 'kind')) === 'Secret' && isScalar(entryOf(map, 'type')?.value)) {
          found.secrets.push({ line: lineOf(map), what: nameOf([...path, map]), map })
        }
      },
      Pair(_key, pair, path) {
        if (!isEntry(pair) || pair.key.value !== 'flexVolume') return
        const what = nameOf(path)
        if (hasAlias(pair.value)) found.unread.push({ line: lineOf(pair.key), what })
        else if (isMap(pair.value) && entryOf(pair.value, 'driver') !== undefined) {
          found.volumes.push({ line: lineOf(pair.key), what, map: pair.value })
        }
      },
    })
  }
  return found

  function refuse(position: number, fault: string): never {
    const { line, col } = counter.linePos(position)
    throw new Refusal(
      `${file}, line ${line}, column ${col}, is not YAML (${fault}): mend it, or render a template first ("helm template")`,
    )
  }

  function assertUniqueKeys({ items }: YAMLMap): void {
    const keys = new Set<unknown>()
    for (const { key } of items) {
      if (!isScalar(key)) continue
      if (keys.has(key.value)) refuse(key.range?.[0] ?? 0, 'duplicate key')
      keys.add(key.value)
    }
  }

  function lineOf(node: Node): number {
    return counter.linePos(node.range?.[0] ?? 0).line
  }
}

function hasAlias(node: Node): boolean {
  let isFound = isAlias(node)
  visit(node, {
    Alias() {
      isFound = true
      return visit.BREAK
    },
  })
  return isFound
}

/** The pair of a map with this key. */
export function entryOf(map: YAMLMap, key: string): Entry | undefined {
  return map.items.filter(isEntry).find((pair) => pair.key.value === key)
}

/** A value as its author wrote it; undefined where there is none, or more than a scalar. */
export function textOf(entry: Entry | undefined): string | undefined {
  if (!isScalar(entry?.value)) return undefined
  const { value, source } = entry.value
  return typeof value === 'string' ? value : value === null ? '' : (source ?? String(value))
}

export function isEntry(pair: Pair<unknown, unknown>): pair is Entry {
  return isScalar(pair.key) && pair.value !== null && pair.value !== undefined
}

/** The name in an object's metadata. */
export function objectName(object: YAMLMap): string | undefined {
  const metadata = entryOf(object, 'metadata')?.value
  return isMap(metadata) ? textOf(entryOf(metadata, 'name')) : undefined
}

/** Who has it: the innermost object with a kind, and the name of the volume. */
function nameOf(path: readonly unknown[]): string {
  const maps = path.filter((node) => isMap(node))
  const owner = maps.findLast((map) => entryOf(map, 'kind') !== undefined)
  const volume = maps.at(-1)
  const name = owner && objectName(owner)
  const parts = owner
    ? [`${textOf(entryOf(owner, 'kind'))}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`]
    : []
  const called = volume === owner || volume === undefined ? undefined : textOf(entryOf(volume, 'name'))
  if (called !== undefined) parts.push(`volume ${JSON.stringify(called)}`)
  return parts.join(', ')
}
