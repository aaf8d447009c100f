import { isMap, isScalar, type YAMLMap } from 'yaml'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { formatSource } from '../request/source.ts'
import { kindOf } from '../volume/index.ts'
import { nameOf, namingOf } from '../volume/kind/options.ts'
import { KNOWN, type KnownDriver, OTHERS } from './drivers.ts'
import { Edits } from './edits.ts'
import { entryOf, type Found, isEntry, objectName, readManifest, textOf } from './manifest.ts'
import { type Foreign, translate } from './translate.ts'

const OWN = 'modekeep/fs'

/** What migrate says of one place in a manifest. */
export interface Remark {
  line: number
  /** Whose volume or Secret it is. */
  what: string
  text: string
}

export interface Migrated {
  /** The manifests, rewritten. */
  text: string
  /** How many volumes and Secrets are modekeep's now that were another driver's. */
  volumes: number
  secrets: number
  /** What could not be taken over. */
  left: Remark[]
  /** What to know or to do besides. */
  notes: Remark[]
  /** Rules for "allow" of the nodes' configuration, without which the nodes refuse these volumes. */
  allow: object[]
}

/**
 * Rewrites FlexVolumes of other drivers to modekeep's. What it does not change stays byte for byte.
 * @param text YAML or JSON, any number of documents
 * @param file for messages
 * @throws {Refusal} where it is not YAML
 */
export function migrate(text: string, file: string): Migrated {
  const { volumes, secrets, unread } = readManifest(text, file)
  const edits = new Edits(text)
  const left: Remark[] = unread.map((place) => ({
    ...place,
    text: 'flexVolume is written by an alias: write it out, and call this again',
  }))
  const notes: Remark[] = []
  const requests = volumes.map((volume) => rewriteVolume(edits, volume, secrets, left, notes))
  const rewritten = secrets.filter((secret) => rewriteSecret(edits, secret, notes))
  const done = edits.applied()
  refuseOther(done, file, requests)
  return {
    text: done,
    volumes: requests.filter((request) => request !== undefined).length,
    secrets: rewritten.length,
    left: left.toSorted(byLine),
    notes: notes.toSorted(byLine),
    allow: rulesFor(requests.filter((request) => request !== undefined)),
  }
}

/** Some ways of writing YAML cannot be changed in place: what came out is read once more. */
function refuseOther(text: string, file: string, requests: readonly (MountRequest | undefined)[]): void {
  const { volumes } = readManifest(text, 'what was written')
  for (const [index, request] of requests.entries()) {
    const found = volumes[index]
    const isSame =
      request === undefined ||
      (found !== undefined &&
        textOf(entryOf(found.map, 'driver')) === OWN &&
        textOf(entryOf(found.map, 'fsType')) === request.fsType &&
        isWritten(foreignOf(found.map, false).options, request))
    if (isSame) continue
    throw new Refusal(
      `${file}, volume ${index + 1}, is written in a way that cannot be changed in place: write its flexVolume as "key: value" lines`,
    )
  }
}

function isWritten(options: Foreign['options'], { source, mountOptions }: MountRequest): boolean {
  return (
    options.get('source') === formatSource(source) && (options.get('mountOptions') ?? '') === mountOptions.join(',')
  )
}

const byLine = (one: Remark, other: Remark) => one.line - other.line

/** @returns the volume as modekeep reads it; undefined where it stays what it was */
function rewriteVolume(
  edits: Edits,
  { map, line, what }: Found,
  secrets: readonly Found[],
  left: Remark[],
  notes: Remark[],
): MountRequest | undefined {
  const name = textOf(entryOf(map, 'driver')) ?? ''
  if (name === OWN) return undefined
  const leave = (text: string) => void left.push({ line, what, text })
  const other = OTHERS.find(({ names }) => names.includes(name))
  if (other !== undefined) {
    leave(`driver ${quoted(name)} stays: ${other.why}: ${other.remedy}`)
    return undefined
  }
  const driver = KNOWN.find(({ names }) => names.includes(name))
  if (driver === undefined) {
    const known = KNOWN.flatMap(({ names }) => names).join(', ')
    leave(`driver ${quoted(name)} stays, as it is none of ${known}: "docs/migration.md" says how to write its options`)
    return undefined
  }
  const secret = secretOf(map)
  const translated = translate(driver, foreignOf(map, secret !== undefined))
  if (Array.isArray(translated)) {
    translated.forEach(leave)
    return undefined
  }
  translated.left.forEach(leave)
  for (const text of translated.notes) notes.push({ line, what, text })
  if (translated.request === undefined) return undefined
  if (secret !== undefined && !secrets.some((found) => objectName(found.map) === secret)) {
    notes.push({ line, what, text: `its Secret ${quoted(secret)} is not here: its type must be ${OWN}` })
  }
  if (what.startsWith('PersistentVolume ')) {
    const text =
      "a PersistentVolume's source cannot be changed where it exists: delete it first (with reclaim policy Retain its data stays), and let its claim bind again"
    notes.push({ line, what, text })
  }
  write(edits, map, driver, translated)
  return translated.request
}

function foreignOf(map: YAMLMap, hasSecret: boolean): Foreign {
  const options = entryOf(map, 'options')?.value
  const pairs = isMap(options) ? options.items.filter(isEntry) : []
  return {
    fsType: textOf(entryOf(map, 'fsType')),
    readOnly: textOf(entryOf(map, 'readOnly')) === 'true',
    hasSecret,
    options: new Map(pairs.map((pair) => [String(pair.key.value), textOf(pair) ?? ''])),
  }
}

function secretOf(map: YAMLMap): string | undefined {
  const reference = entryOf(map, 'secretRef')?.value
  return isMap(reference) ? textOf(entryOf(reference, 'name')) : undefined
}

/** The new words in place of the old ones: the first key that told of the source is the one that has it now. */
function write(
  edits: Edits,
  map: YAMLMap,
  driver: KnownDriver,
  wanted: { fsType: string; source: string; mountOptions: string | undefined; ownership: string | undefined },
): void {
  const named = entryOf(map, 'driver')
  const fsType = entryOf(map, 'fsType')
  const options = entryOf(map, 'options')?.value
  if (named === undefined || !isScalar(named.value) || !isMap(options)) return
  edits.setValue(named.value, OWN)
  if (fsType === undefined) edits.addAfter(map, named, 'fsType', wanted.fsType)
  else if (isScalar(fsType.value) && textOf(fsType) !== wanted.fsType) edits.setValue(fsType.value, wanted.fsType)
  const values = new Map([
    ['source', wanted.source],
    ['mountOptions', wanted.mountOptions],
  ])
  const gone = new Set<unknown>()
  for (const pair of options.items.filter(isEntry)) {
    const key = String(pair.key.value)
    const fate = driver.options[key]
    const target =
      fate === undefined || fate.to === 'nothing' ? undefined : fate.to === 'mountOptions' ? fate.to : 'source'
    const value = target === undefined ? undefined : values.get(target)
    if (target === undefined || value === undefined) {
      gone.add(pair)
      continue
    }
    values.delete(target)
    if (key !== target) edits.setValue(pair.key, target)
    if (textOf(pair) !== value) edits.setValue(pair.value, value)
    if (target === 'source' && wanted.ownership !== undefined)
      edits.addAfter(options, pair, 'ownership', wanted.ownership)
  }
  edits.remove(options, gone)
}

/** @returns whether it was one of a known driver's */
function rewriteSecret(edits: Edits, { map, line, what }: Found, notes: Remark[]): boolean {
  const type = entryOf(map, 'type')
  const name = textOf(type) ?? ''
  const driver = KNOWN.find(({ names }) => names.includes(name))
  if (driver === undefined || !isScalar(type?.value)) return false
  edits.setValue(type.value, OWN)
  notes.push({
    line,
    what,
    text: `its type was ${name}, and a Secret's type cannot be changed: give it another name while pods of ${name} still use the old one, or delete that first`,
  })
  return true
}

/** A rule for each kind of volume. */
function rulesFor(requests: readonly MountRequest[]): object[] {
  return Map.groupBy(requests, ({ fsType }) => fsType)
    .entries()
    .map(([fsType, all]) => {
      const sources = all.flatMap(({ source }) => formatSource(source) ?? [])
      const options = all.flatMap(({ mountOptions }) => mountOptions)
      const rules = kindOf(fsType)?.optionRules() ?? new Map()
      const isNamed = options.some((option) => namingOf(rules, option) !== 'none')
      const names = options.map((option) => (namingOf(rules, option) === 'value' ? option : nameOf(option)))
      return {
        sources: [...new Set(sources)].sort(),
        fsTypes: [fsType],
        ...(isNamed && { mountOptions: [...new Set(names)].sort() }),
      }
    })
    .toArray()
}
