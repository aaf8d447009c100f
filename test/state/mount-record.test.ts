import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type MountRequest, toRecordedRequest } from '../../src/config/mount-request.ts'
import { type Refusal, UnknownFormatRefusal } from '../../src/errors/refusal.ts'
import { createTrustedFiles } from '../../src/kernel/trusted-files.ts'
import {
  createMountRecord,
  listReadableMountRecords,
  listRecordedMounts,
  type MountRecord,
  mountRecords,
} from '../../src/state/mount-record.ts'
import { DamagedRecord } from '../../src/state/record.ts'
import { locateMountRecords, type Store } from '../../src/state/record-directories.ts'
import { FS_GROUP, MOUNTED } from '../helpers/mount-records.ts'
import { addChecksum } from '../helpers/sealed.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const REQUEST: MountRequest = {
  directory: '/pods/p/v',
  source: { type: 'local', path: '/srv/a' },
  fsType: 'bind',
  mountOptions: ['noexec', 'noatime'],
  readOnly: false,
  ownership: 'walk',
  fsGroup: FS_GROUP,
  restoreOnUnmount: true,
  pod: 'n/p',
}
const RECORD = createMountRecord(REQUEST, 'boot-1', {
  volume: 'fs-2-3',
  path: '/srv/a',
})

let top: string
let store: Store
beforeEach(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-records-`)
  store = { host: { ...memoryHost(new MemoryWorld()), files: createTrustedFiles(fs) }, config: { stateDir: top } }
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

function put(text: string): void {
  const place = locateMountRecords(store, RECORD.directory).path
  fs.mkdirSync(place, { recursive: true })
  fs.writeFileSync(`${place}/record.json`, text)
}

const unreadable = () => listRecordedMounts(store).filter(({ problem }) => problem !== undefined)

describe('a mount record', () => {
  it('has every value that an unmount needs', () => {
    expect(RECORD).toEqual({
      boot: 'boot-1',
      directory: '/pods/p/v',
      pod: 'n/p',
      request: toRecordedRequest(REQUEST),
      source: '/srv/a',
      volume: 'fs-2-3',
      given: { by: 'none' },
      replacedDaemons: [],
      hadSecrets: false,
    })
  })

  it('of a volume that ends with its mount has no volume name', () => {
    const record = createMountRecord({ ...REQUEST, source: { type: 'none' }, fsType: 'tmpfs' }, 'boot-1', undefined)
    expect(record).toMatchObject({ request: { fsType: 'tmpfs' } })
    expect(record.volume).toBeUndefined()
    expect(record.source).toBeUndefined()
  })

  it.each([['/pods/p/v'], [`/${'x'.repeat(250)}/${'é'.repeat(120)}`], ['/with space\nand newline']])(
    'is written, read, listed and removed for %j',
    (directory) => {
      const record = { ...RECORD, directory }
      expect(mountRecords.read(store, directory)).toBeUndefined()
      mountRecords.write(store, record)
      expect(mountRecords.read(store, directory)).toEqual(record)
      expect(listReadableMountRecords(store)).toEqual([record])
      mountRecords.remove(store, directory)
      expect(mountRecords.read(store, directory)).toBeUndefined()
      expect(listReadableMountRecords(store)).toEqual([])
    },
  )

  it("may be in a parent directory of another mount's record", () => {
    const short = { ...RECORD, directory: `/${'x'.repeat(197)}` }
    const long = { ...RECORD, directory: `/${'x'.repeat(198)}` }
    for (const record of [short, long]) mountRecords.write(store, record)
    expect(
      listReadableMountRecords(store)
        .map((record) => record.directory.length)
        .sort(),
    ).toEqual([198, 199])
    mountRecords.remove(store, short.directory)
    expect(listReadableMountRecords(store)).toEqual([long])
  })

  it('is read again after another process changed, damaged or removed it', () => {
    mountRecords.write(store, RECORD)
    expect(mountRecords.read(store, RECORD.directory)).toEqual(RECORD)
    const changed = { ...RECORD, pod: 'n/other' }
    put(mountRecords.serialize(changed))
    expect(mountRecords.read(store, RECORD.directory)).toEqual(changed)
    put(mountRecords.serialize(RECORD).replace('n/p', 'n/q'))
    expect(() => mountRecords.read(store, RECORD.directory)).toThrow(DamagedRecord)
    fs.rmSync(locateMountRecords(store, RECORD.directory).path, { recursive: true })
    expect(mountRecords.read(store, RECORD.directory)).toBeUndefined()
  })

  it('is listed without foreign files', () => {
    mountRecords.write(store, RECORD)
    const place = locateMountRecords(store, RECORD.directory).path
    fs.writeFileSync(`${place}/lock`, '')
    fs.writeFileSync(`${place}/record.json.new`, JSON.stringify({ ...RECORD, pod: 'torn' }))
    fs.mkdirSync(`${top}/mounts/foreign`)
    fs.writeFileSync(`${top}/mounts/foreign/record.json`, JSON.stringify({ ...RECORD, pod: 'foreign' }))
    expect(listReadableMountRecords(store)).toEqual([RECORD])
  })

  const WHOLE = { format: 2, ...RECORD }
  const markSwept = () => fs.writeFileSync(`${top}/boot`, store.host.bootId())

  it.each(['', '\0'.repeat(512)])(
    'that a power cut left as %j counts as missing until the records of earlier boots are removed',
    (text) => {
      put(text)
      expect(mountRecords.find(store, RECORD.directory)).toEqual({})
      expect(listRecordedMounts(store)).toEqual([])
      markSwept()
      expect(unreadable()).toEqual([{ directory: RECORD.directory, problem: expect.any(DamagedRecord) }])
    },
  )

  it.each<[string, string, typeof Refusal]>([
    ['empty', '', DamagedRecord],
    ['torn', addChecksum(WHOLE).slice(0, 100), DamagedRecord],
    ['of zeros', '\0'.repeat(512), DamagedRecord],
    ['no object', '[]', DamagedRecord],
    ['null', 'null', DamagedRecord],
    ['without its checksum', JSON.stringify(WHOLE), DamagedRecord],
    ['without its format', addChecksum(RECORD), DamagedRecord],
    ['with an unknown method', addChecksum({ ...WHOLE, given: { by: 'magic' } }), DamagedRecord],
    ['with a number for its mount id', addChecksum({ ...WHOLE, mounted: { ...MOUNTED, mountId: 77 } }), DamagedRecord],
    ['with an incomplete mount', addChecksum({ ...WHOLE, mounted: { mountId: '77' } }), DamagedRecord],
    ['without its directory', addChecksum({ ...WHOLE, directory: undefined }), DamagedRecord],
    ['of another directory', addChecksum({ ...WHOLE, directory: '/pods/q/v' }), DamagedRecord],
    ['without its request', addChecksum({ ...WHOLE, request: undefined }), DamagedRecord],
    ['with text for its device', addChecksum({ ...WHOLE, mounted: { ...MOUNTED, device: '5' } }), DamagedRecord],
    ["another program's", '{"name":"x","version":1}', DamagedRecord],
    ['of an earlier format', JSON.stringify({ ...WHOLE, format: 1, phase: 'ready' }), UnknownFormatRefusal],
    ['of a later format with any content', JSON.stringify({ format: 3, directory: 7 }), UnknownFormatRefusal],
  ])('that is %s is never read as missing, and does not hide others', (_what, text, problem) => {
    markSwept()
    put(text)
    const other = { ...RECORD, directory: '/pods/q/v' }
    mountRecords.write(store, other)
    expect(() => mountRecords.read(store, RECORD.directory)).toThrow(problem)
    expect(mountRecords.has(store, RECORD.directory)).toBe(true)
    expect(listReadableMountRecords(store)).toEqual([other])
    expect(unreadable()).toEqual([{ directory: RECORD.directory, record: undefined, problem: expect.any(problem) }])
    mountRecords.write(store, RECORD)
    expect(mountRecords.read(store, RECORD.directory)).toEqual(RECORD)
    expect(unreadable()).toEqual([])
  })

  it('of another format is refused with both formats and the remedy', () => {
    put(JSON.stringify({ format: 3 }))
    expect(() => mountRecords.read(store, RECORD.directory)).toThrow(
      `the record ${locateMountRecords(store, RECORD.directory).path}/record.json cannot be used (its format is 3, this version reads 2): ` +
        'install the version of modekeep that made it, or move the file away where nothing of it is needed any more',
    )
  })
})

it('a mount record is stored as one JSON line', () => {
  const record: MountRecord = { ...RECORD, mounted: { ...MOUNTED, mountId: '9223372036854775809' } }
  mountRecords.write(store, record)
  const text = fs.readFileSync(`${locateMountRecords(store, record.directory).path}/record.json`, 'utf8')
  expect(text.endsWith('}\n')).toBe(true)
  expect(JSON.parse(text)).toEqual({ format: 2, ...record, sum: expect.any(Number) })
})
