import fc, { type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { VolumeSource } from '../../src/config/source.ts'
import { listReadableMountRecords, type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { listVolumeReservations, reservationRecords, type VolumeReservation } from '../../src/state/process-records.ts'
import { DamagedRecord, type RecordReadResult } from '../../src/state/record.ts'
import { locateMountRecords, locateVolumeRecords } from '../../src/state/record-directories.ts'
import { type VolumeRecord, volumeRecords } from '../../src/state/volume-record.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'
import { type Damage, damaged, damages } from './damage.ts'
import { holds, runs } from './holds.ts'
import { anyText } from './texts.ts'

const STATE = '/node/state'
const PLACE = { config: { stateDir: STATE } }
const wellFormed = anyText.filter((text) => !/[\p{Surrogate}\0]/u.test(text))
const text = fc.oneof(fc.constantFrom('', 'v', '/srv/volumes/data'), wellFormed)
const group = fc.nat({ max: 4294967294 })
const volume = fc.stringMatching(/^[0-9a-f]{4,40}(-[0-9a-f]{1,8}){2}$/)
const directory = fc
  .array(
    fc.oneof(
      fc.constantFrom('pods', 'v', 'a b', 'é'),
      wellFormed.map((s) => s.replaceAll('/', '')),
    ),
    { minLength: 1 },
  )
  .map((names) => `/${names.filter((name) => name !== '').join('/')}x`)

const optional = <T>(values: Arbitrary<T>) => fc.option(values, { nil: undefined })
const mountId = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)
const sources: Arbitrary<VolumeSource> = fc.oneof(
  fc.constant({ type: 'none' as const }),
  fc.record({ type: fc.constantFrom('local', 'image', 'device'), path: text }),
  fc.record({ type: fc.constantFrom('export', 'share'), server: text, path: text }),
  fc.record({ type: fc.constant('text' as const), text }),
)
const anyMountRecords: Arbitrary<MountRecord> = fc.record({
  boot: text,
  directory,
  pod: optional(text),
  request: fc.record({
    source: sources,
    subPath: optional(text),
    fsType: text,
    mountOptions: fc.array(text),
    readOnly: fc.boolean(),
    fsGroup: optional(group),
    ownership: fc.constantFrom('none', 'walk', 'idmap', 'auto'),
    idmapFrom: optional(group),
    groupAccess: fc.constantFrom('keep', 'grant'),
    changePolicy: fc.constantFrom('OnRootMismatch', 'Always'),
    restoreOnUnmount: fc.boolean(),
    rootSetGid: optional(fc.constant(true)),
    submounts: fc.option(fc.constantFrom('refuse', 'hide', 'include'), { nil: undefined }),
  }),
  source: optional(text),
  identity: optional(text),
  volume: optional(volume),
  given: fc.oneof(
    fc.record({ by: fc.constant('none' as const), why: optional(text) }),
    fc.record({ by: fc.constant('walk' as const), group, why: text }),
    fc.record({ by: fc.constant('idmap' as const), from: group, why: text }),
    fc.record({ by: fc.constant('option' as const), why: text }),
  ),
  mounted: optional(fc.record({ mountId, device: fc.nat(), namespace: text, since: fc.nat() })),
  replaces: optional(fc.record({ mountId, staging: optional(text) })),
  replacedDaemons: fc.array(text),
  staging: optional(text),
  daemons: optional(
    fc.array(fc.record({ staging: text, processes: fc.array(fc.record({ pid: fc.nat(), start: text })) })),
  ),
  hadSecrets: fc.boolean(),
})
const anyVolumeRecords: Arbitrary<VolumeRecord> = fc.record({
  volume,
  source: text,
  group,
  groupAccess: fc.constantFrom('keep', 'grant'),
  complete: fc.boolean(),
  restorePending: fc.boolean(),
})
const location = fc.record({ device: fc.constantFrom('8:1', '0:34'), path: text })
const anyReservations: Arbitrary<VolumeReservation> = fc.record(
  { volume, source: text, location, group, pod: text, directory: text },
  { requiredKeys: ['volume', 'source'] },
)

/** A kind of record: how it is written and read, and where it lies. */
interface Kind<T> {
  name: string
  records: Arbitrary<T>
  write(host: Host, record: T): void
  read(host: Host, key: string): T | undefined
  find(host: Host, key: string): RecordReadResult<T>
  list(host: Host): T[]
  key(record: T): string
  path(key: string): string
}
type Host = ReturnType<typeof memoryHost>

const KINDS = [
  {
    name: 'mount',
    records: anyMountRecords,
    write: (host, record) => mountRecords.write({ host, ...PLACE }, record),
    read: (host, key) => mountRecords.read({ host, ...PLACE }, key),
    find: (host, key) => mountRecords.find({ host, ...PLACE }, key),
    list: (host) => listReadableMountRecords({ host, ...PLACE }),
    key: (record) => record.directory,
    path: (key) => `${locateMountRecords(PLACE, key).path}/record.json`,
  } satisfies Kind<MountRecord>,
  {
    name: 'volume',
    records: anyVolumeRecords,
    write: (host, record) => volumeRecords.write({ host, ...PLACE }, record),
    read: (host, key) => volumeRecords.read({ host, ...PLACE }, key),
    find: (host, key) => volumeRecords.find({ host, ...PLACE }, key),
    list: () => [],
    key: (record) => record.volume,
    path: (key) => `${locateVolumeRecords(PLACE, key).path}/record.json`,
  } satisfies Kind<VolumeRecord>,
  {
    name: 'reservation',
    records: anyReservations,
    write: (host, record) => reservationRecords.write({ host, ...PLACE }, record),
    read: (host, key) => reservationRecords.read({ host, ...PLACE }, key),
    find: (host, key) => reservationRecords.find({ host, ...PLACE }, key),
    list: () => [],
    key: (record) => record.volume,
    path: (key) => `${STATE}/reservations/${key}.json`,
  } satisfies Kind<VolumeReservation>,
] as unknown as Kind<{ directory: string }>[]

function fresh() {
  const world = new MemoryWorld()
  const host = memoryHost(world)
  host.files.makeDirectory(STATE)
  // Records that a power cut left empty have been removed in this boot.
  world.fs.writeFileSync(`${STATE}/boot`, host.bootId())
  return { host, spoil: (path: string, damage: Damage) => spoil(world, path, damage) }
}

function spoil({ fs }: MemoryWorld, path: string, damage: Damage): void {
  fs.writeFileSync(path, damaged(Buffer.from(fs.readFileSync(path) as Uint8Array), damage))
}

describe.each(KINDS.map((kind) => [kind.name, kind] as const))('a %s record', (_name, kind) => {
  it('is read as it was written', () => {
    holds(
      kind.records,
      (record) => {
        const { host } = fresh()
        kind.write(host, record)
        expect(kind.read(host, kind.key(record))).toEqual(record)
      },
      200,
    )
  })

  it('that is damaged is read as it was written, or refused', () => {
    let unread = 0
    holds(
      fc.tuple(kind.records, damages),
      ([record, damage]) => {
        const { host, spoil } = fresh()
        kind.write(host, record)
        spoil(kind.path(kind.key(record)), damage)
        const { problem } = kind.find(host, kind.key(record))
        if (problem) unread++
        else expect(kind.read(host, kind.key(record))).toEqual(record)
        for (const one of kind.list(host)) expect(one).toEqual(record)
      },
      1000,
    )
    expect(unread).toBeGreaterThan(runs(500))
  })

  it('in place of another record is never read as the other record', () => {
    holds(
      fc.tuple(kind.records, kind.records).filter(([one, other]) => kind.key(one) !== kind.key(other)),
      ([one, other]) => {
        const { host } = fresh()
        kind.write(host, one)
        kind.write(host, other)
        const text = host.files.read(kind.path(kind.key(other))) ?? ''
        host.files.replace(kind.path(kind.key(one)), text)
        expect(() => kind.read(host, kind.key(one))).toThrow(DamagedRecord)
        expect(kind.read(host, kind.key(other))).toEqual(other)
      },
      200,
    )
  })
})

it('a foreign file among the records is skipped', () => {
  const { host } = fresh()
  const [record] = fc.sample(anyMountRecords, { numRuns: 1, seed: 1 })
  if (record === undefined) throw new Error('no record')
  mountRecords.write({ host, ...PLACE }, record)
  for (const name of ['%foreign', '+foreign', 'foreign'])
    host.files.replace(`${STATE}/mounts/${name}`, 'not of modekeep')
  expect(listReadableMountRecords({ host, ...PLACE })).toEqual([record])
  host.files.makeDirectory(`${STATE}/reservations`)
  host.files.replace(`${STATE}/reservations/foreign.json`, 'not of modekeep')
  expect(listVolumeReservations({ host, ...PLACE })).toEqual([])
})
