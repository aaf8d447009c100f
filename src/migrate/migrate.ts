import { isMap, isScalar, type YAMLMap } from 'yaml'
import type { MountRequest } from '../config/mount-request.ts'
import { formatSource } from '../config/source.ts'
import { escapeUnprintable } from '../errors/escape.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { findVolumeKind } from '../volume/index.ts'
import { findRequiredOptionNaming, parseOptionName } from '../volume/kind/options.ts'
import { SUPPORTED_DRIVERS, type SupportedDriver, UNSUPPORTED_DRIVERS } from './drivers.ts'
import { TextEdits } from './edits.ts'
import { findMapEntry, isMapEntry, type ManifestMap, readManifest, readObjectName, readScalar } from './manifest.ts'
import { type ForeignVolume, translateVolume } from './translate.ts'

const MODEKEEP_DRIVER = 'modekeep/fs'

/** A remark about one volume or Secret of a manifest. */
export interface MigrationRemark {
  line: number
  /** The volume or Secret. */
  what: string
  text: string
}

export interface MigrationResult {
  /** The rewritten manifests. */
  text: string
  /** Number of rewritten volumes and Secrets. */
  volumes: number
  secrets: number
  /** Parts that could not be translated. */
  left: MigrationRemark[]
  /** Further advice. */
  notes: MigrationRemark[]
  /** Rules for "allow" of the nodes' configuration. Without them the nodes refuse these volumes. */
  allow: object[]
}

/**
 * Rewrites FlexVolumes of other drivers to modekeep's. All other bytes stay as they are.
 * @param text YAML or JSON, any number of documents
 * @param file for messages
 * @throws {Refusal} if the text is not YAML
 */
export function migrateManifest(text: string, file: string): MigrationResult {
  const { volumes, secrets, aliased: unread } = readManifest(text, file)
  const edits = new TextEdits(text)
  const left: MigrationRemark[] = unread.map((place) => ({
    ...place,
    text: 'flexVolume is written by an alias: write it out, and call this again',
  }))
  const notes: MigrationRemark[] = []
  const requests = volumes.map((volume) => rewriteVolume(edits, volume, secrets, left, notes))
  const rewritten = secrets.filter((secret) => rewriteSecret(edits, secret, notes))
  const done = edits.apply()
  assertVolumesRewritten(done, file, requests)
  return {
    text: done,
    volumes: requests.filter((request) => request !== undefined).length,
    secrets: rewritten.length,
    left: left.toSorted(compareRemarkLines),
    notes: notes.toSorted(compareRemarkLines),
    allow: createAllowRules(requests.filter((request) => request !== undefined)),
  }
}

/** Reads the result once more, because some YAML styles cannot be changed in place. */
function assertVolumesRewritten(text: string, file: string, requests: readonly (MountRequest | undefined)[]): void {
  const { volumes } = readManifest(text, 'what was written')
  for (const [index, request] of requests.entries()) {
    const volume = volumes[index]
    const isSame =
      request === undefined ||
      (volume !== undefined &&
        readScalar(findMapEntry(volume.map, 'driver')) === MODEKEEP_DRIVER &&
        readScalar(findMapEntry(volume.map, 'fsType')) === request.fsType &&
        isVolumeRewritten(readForeignVolume(volume.map, false).options, request))
    if (isSame) continue
    throw Refusal.of(
      'command',
      `${file}, volume ${index + 1}, is written in a way that cannot be changed in place`,
      'write its flexVolume as "key: value" lines',
    )
  }
}

function isVolumeRewritten(options: ForeignVolume['options'], { source, mountOptions }: MountRequest): boolean {
  return (
    options.get('source') === formatSource(source) && (options.get('mountOptions') ?? '') === mountOptions.join(',')
  )
}

const compareRemarkLines = (one: MigrationRemark, other: MigrationRemark) => one.line - other.line

/** @returns the volume as modekeep reads it; undefined: it was not changed */
function rewriteVolume(
  edits: TextEdits,
  { map, line, what }: ManifestMap,
  secrets: readonly ManifestMap[],
  left: MigrationRemark[],
  notes: MigrationRemark[],
): MountRequest | undefined {
  const name = readScalar(findMapEntry(map, 'driver')) ?? ''
  if (name === MODEKEEP_DRIVER) return undefined
  const leave = (text: string) => void left.push({ line, what, text })
  const other = UNSUPPORTED_DRIVERS.find(({ names }) => names.includes(name))
  if (other !== undefined) {
    leave(`driver ${quoteValue(name)} stays: ${other.why}: ${other.remedy}`)
    return undefined
  }
  const driver = SUPPORTED_DRIVERS.find(({ names }) => names.includes(name))
  if (driver === undefined) {
    const known = SUPPORTED_DRIVERS.flatMap(({ names }) => names).join(', ')
    leave(
      `driver ${quoteValue(name)} stays, as it is none of ${known}: "docs/migration.md" says how to write its options`,
    )
    return undefined
  }
  const secret = readSecretName(map)
  const translated = translateVolume(driver, readForeignVolume(map, secret !== undefined))
  if (Array.isArray(translated)) {
    translated.forEach(leave)
    return undefined
  }
  translated.left.forEach(leave)
  for (const text of translated.notes) notes.push({ line, what, text })
  if (translated.request === undefined) return undefined
  if (secret !== undefined && !secrets.some(({ map }) => readObjectName(map) === secret)) {
    const text = `its Secret ${quoteValue(secret)} is not here: its type must be ${MODEKEEP_DRIVER}`
    notes.push({ line, what, text })
  }
  if (what.startsWith('PersistentVolume ')) {
    const text =
      "a PersistentVolume's source cannot be changed where it exists: delete it first (with reclaim policy Retain its data stays), and let its claim bind again"
    notes.push({ line, what, text })
  }
  rewriteVolumeForModekeep(edits, map, driver, translated)
  return translated.request
}

function readForeignVolume(map: YAMLMap, hasSecret: boolean): ForeignVolume {
  const options = findMapEntry(map, 'options')?.value
  const pairs = isMap(options) ? options.items.filter(isMapEntry) : []
  return {
    fsType: readScalar(findMapEntry(map, 'fsType')),
    readOnly: readScalar(findMapEntry(map, 'readOnly')) === 'true',
    hasSecret,
    options: new Map(pairs.map((pair) => [String(pair.key.value), readScalar(pair) ?? ''])),
  }
}

function readSecretName(map: YAMLMap): string | undefined {
  const reference = findMapEntry(map, 'secretRef')?.value
  return isMap(reference) ? readScalar(findMapEntry(reference, 'name')) : undefined
}

/** Rewrites a volume. The first key that described the source is replaced by `source`. */
function rewriteVolumeForModekeep(
  edits: TextEdits,
  map: YAMLMap,
  driver: SupportedDriver,
  translation: { fsType: string; source: string; mountOptions: string | undefined; ownership: string | undefined },
): void {
  const driverEntry = findMapEntry(map, 'driver')
  const fsType = findMapEntry(map, 'fsType')
  const options = findMapEntry(map, 'options')?.value
  if (driverEntry === undefined || !isScalar(driverEntry.value) || !isMap(options)) return
  edits.setValue(driverEntry.value, MODEKEEP_DRIVER)
  if (fsType === undefined) edits.addAfter(map, driverEntry, 'fsType', translation.fsType)
  else if (isScalar(fsType.value) && readScalar(fsType) !== translation.fsType)
    edits.setValue(fsType.value, translation.fsType)
  const values = new Map([
    ['source', translation.source],
    ['mountOptions', translation.mountOptions],
  ])
  const removed = new Set<unknown>()
  for (const pair of options.items.filter(isMapEntry)) {
    const key = String(pair.key.value)
    const mapping = driver.options[key]
    const target =
      mapping === undefined || mapping.to === 'nothing'
        ? undefined
        : mapping.to === 'mountOptions'
          ? mapping.to
          : 'source'
    const value = target === undefined ? undefined : values.get(target)
    if (target === undefined || value === undefined) {
      removed.add(pair)
      continue
    }
    values.delete(target)
    if (key !== target) edits.setValue(pair.key, target)
    if (readScalar(pair) !== value) edits.setValue(pair.value, value)
    if (target === 'source' && translation.ownership !== undefined)
      edits.addAfter(options, pair, 'ownership', translation.ownership)
  }
  edits.remove(options, removed)
}

/** @returns whether it was the Secret of a supported driver */
function rewriteSecret(edits: TextEdits, { map, line, what }: ManifestMap, notes: MigrationRemark[]): boolean {
  const type = findMapEntry(map, 'type')
  const name = readScalar(type) ?? ''
  const driver = SUPPORTED_DRIVERS.find(({ names }) => names.includes(name))
  if (driver === undefined || !isScalar(type?.value)) return false
  edits.setValue(type.value, MODEKEEP_DRIVER)
  notes.push({
    line,
    what,
    text: `its type was ${name}, and a Secret's type cannot be changed: give it another name while pods of ${name} still use the old one, or delete that first`,
  })
  return true
}

/** Creates a rule for each kind of volume. */
function createAllowRules(requests: readonly MountRequest[]): object[] {
  return Map.groupBy(requests, ({ fsType }) => fsType)
    .entries()
    .map(([fsType, all]) => {
      const sources = all.flatMap(({ source }) => formatSource(source) ?? [])
      const options = all.flatMap(({ mountOptions }) => mountOptions)
      const rules = findVolumeKind(fsType)?.optionRules() ?? new Map()
      const isNamed = options.some((option) => findRequiredOptionNaming(rules, option) !== 'none')
      const names = options.map((option) =>
        findRequiredOptionNaming(rules, option) === 'value' ? option : parseOptionName(option),
      )
      return {
        sources: [...new Set(sources)].sort(),
        fsTypes: [fsType],
        ...(isNamed && { mountOptions: [...new Set(names)].sort() }),
      }
    })
    .toArray()
}

/** Formats the remarks as lines. @param name of the file */
export function formatMigrationRemarks(
  { volumes, secrets, left, notes, allow }: MigrationResult,
  name: string,
): string {
  const line = (kind: string) => (remark: MigrationRemark) =>
    `${kind}: ${name}, line ${remark.line}${remark.what && `, ${remark.what}`}: ${remark.text}`
  const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
  const rules = allow.map((rule) => `  ${JSON.stringify(rule)}`)
  const lines = [
    ...left.map(line('left')),
    ...notes.map(line('note')),
    ...(rules.length > 0 ? ['note: "allow" in the configuration of the nodes needs:', ...rules] : []),
    `modekeep: ${counted(volumes, 'volume')} and ${counted(secrets, 'Secret')} rewritten, ${counted(left.length, 'thing')} left to do`,
  ]
  return lines.map((text) => `${escapeUnprintable(text)}\n`).join('')
}
