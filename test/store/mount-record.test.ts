import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Host } from '../../src/host/host.ts'
import { trustedFiles } from '../../src/host/trusted-files.ts'
import type { MountRequest } from '../../src/request/request.ts'
import {
  listMountRecords,
  type MountRecord,
  newMountRecord,
  readMountRecord,
  removeMountRecord,
  writeMountRecord,
} from '../../src/store/mount-record.ts'
import { mountStateDirectory } from '../../src/store/paths.ts'
import { requestKey } from '../../src/store/request-key.ts'
import { memoryHost } from '../memory-host/index.ts'
import { MemoryWorld } from '../memory-host/world.ts'

const REQUEST: MountRequest = {
  directory: '/pods/p/v',
  source: '/srv/a',
  subPath: '',
  fsType: 'bind',
  mountOptions: ['noexec', 'noatime'],
  readOnly: false,
  fsGroup: 2000,
  ownership: 'walk',
  idmapFrom: undefined,
  groupAccess: 'keep',
  changePolicy: 'OnRootMismatch',
  restoreOnUnmount: true,
  pod: 'n/p',
}
const RECORD = newMountRecord(REQUEST, 'boot-1', {
  root: { device: 5 },
  identity: '',
  volume: 'fs-2-3',
  path: '/srv/a',
})

let top: string
let real: Host
beforeEach(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-records-`)
  real = { ...memoryHost(new MemoryWorld()), files: trustedFiles(fs) }
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

function put(text: string): void {
  const place = mountStateDirectory(top, RECORD.directory)
  fs.mkdirSync(place, { recursive: true })
  fs.writeFileSync(`${place}/record.json`, text)
}

describe('a mount record', () => {
  it('holds what an unmount needs', () => {
    expect(RECORD).toEqual({
      format: 1,
      phase: 'preparing',
      boot: 'boot-1',
      directory: '/pods/p/v',
      pod: 'n/p',
      request: requestKey(REQUEST),
      source: '/srv/a',
      fsType: 'bind',
      identity: '',
      volume: 'fs-2-3',
      device: 5,
      ownership: 'none',
      why: '',
      walkGroup: -1,
      mappedFrom: -1,
      since: 0,
      mountId: '',
      replaces: '',
      replacesStaging: '',
      namespace: '',
      staging: '',
      replacedDaemons: [],
      hadSecrets: false,
    })
  })

  it('of a volume that goes with its mount has none, and no device', () => {
    const record = newMountRecord({ ...REQUEST, source: '', fsType: 'tmpfs' }, 'boot-1', undefined)
    expect(record).toMatchObject({ volume: '', device: -1, source: '', fsType: 'tmpfs' })
  })

  it.each([['/pods/p/v'], [`/${'x'.repeat(250)}/${'é'.repeat(120)}`], ['/with space\nand newline']])(
    'is written, read, listed and removed for %j',
    (directory) => {
      const record = { ...RECORD, directory }
      expect(readMountRecord(real, top, directory)).toBeUndefined()
      writeMountRecord(real, top, record)
      expect(readMountRecord(real, top, directory)).toEqual(record)
      expect(listMountRecords(real, top)).toEqual([record])
      removeMountRecord(real, top, directory)
      expect(readMountRecord(real, top, directory)).toBeUndefined()
      expect(listMountRecords(real, top)).toEqual([])
    },
  )

  it('of a version that only walked says so', () => {
    const { ownership: _, why: __, ...old } = { ...RECORD, walkGroup: 2000 }
    put(JSON.stringify(old))
    expect(readMountRecord(real, top, RECORD.directory)).toMatchObject({ ownership: 'walk', why: '', walkGroup: 2000 })
    expect(listMountRecords(real, top)).toMatchObject([{ ownership: 'walk' }])
  })

  it('may lie in the directory of a longer one', () => {
    const short = { ...RECORD, directory: `/${'x'.repeat(197)}` }
    const long = { ...RECORD, directory: `/${'x'.repeat(198)}` }
    for (const record of [short, long]) writeMountRecord(real, top, record)
    expect(
      listMountRecords(real, top)
        .map((record) => record.directory.length)
        .sort(),
    ).toEqual([198, 199])
    removeMountRecord(real, top, short.directory)
    expect(listMountRecords(real, top)).toEqual([long])
  })

  it('is listed without what else lies around', () => {
    writeMountRecord(real, top, RECORD)
    const place = mountStateDirectory(top, RECORD.directory)
    fs.writeFileSync(`${place}/lock`, '')
    fs.writeFileSync(`${place}/record.json.new`, JSON.stringify({ ...RECORD, pod: 'torn' }))
    fs.mkdirSync(`${top}/mounts/foreign`)
    fs.writeFileSync(`${top}/mounts/foreign/record.json`, JSON.stringify({ ...RECORD, pod: 'foreign' }))
    expect(listMountRecords(real, top)).toEqual([RECORD])
  })

  it.each<[string, string]>([
    ['empty', ''],
    ['torn', JSON.stringify(RECORD).slice(0, 100)],
    ['of zeros', '\0'.repeat(512)],
    ['no object', '[]'],
    ['null', 'null'],
    ['of a later format', JSON.stringify({ ...RECORD, format: 2 })],
    ['of no known phase', JSON.stringify({ ...RECORD, phase: 'done' })],
    ['with a number for its mount id', JSON.stringify({ ...RECORD, mountId: 77 })],
    ['without its directory', JSON.stringify({ ...RECORD, directory: undefined })],
    ['without its volume', JSON.stringify({ ...RECORD, volume: undefined })],
    ['without its device', JSON.stringify({ ...RECORD, device: undefined })],
    ['with text for its device', JSON.stringify({ ...RECORD, device: '5' })],
    ["somebody else's", '{"name":"x","version":1}'],
  ])('that is %s reads as none, and does not hide others', (_what, text) => {
    put(text)
    const other = { ...RECORD, directory: '/pods/q/v' }
    writeMountRecord(real, top, other)
    expect(readMountRecord(real, top, RECORD.directory)).toBeUndefined()
    expect(listMountRecords(real, top)).toEqual([other])
    writeMountRecord(real, top, RECORD)
    expect(readMountRecord(real, top, RECORD.directory)).toEqual(RECORD)
  })
})

describe("a request's fixed form", () => {
  it.each<[string, Partial<MountRequest>]>([
    ['the order of mount options', { mountOptions: ['noatime', 'noexec'] }],
    ['the pod', { pod: 'n/q' }],
    ['the spelling of the directory', { directory: '/other' }],
  ])('does not change with %s', (_what, over) => {
    expect(requestKey({ ...REQUEST, ...over })).toBe(requestKey(REQUEST))
  })

  it.each<[Partial<MountRequest>]>([
    [{ source: '/srv/b' }],
    [{ fsType: 'tmpfs' }],
    [{ mountOptions: ['noexec'] }],
    [{ mountOptions: ['noexec,noatime'] }],
    [{ readOnly: true }],
    [{ fsGroup: 2001 }],
    [{ fsGroup: undefined }],
    [{ ownership: 'none' }],
    [{ changePolicy: 'Always' }],
    [{ restoreOnUnmount: false }],
  ])('changes with %j', (over) => {
    expect(requestKey({ ...REQUEST, ...over })).not.toBe(requestKey(REQUEST))
  })

  it('leaves the order of the request itself alone', () => {
    requestKey(REQUEST)
    expect(REQUEST.mountOptions).toEqual(['noexec', 'noatime'])
  })
})

it('a record written is in the file as one JSON line', () => {
  const record: MountRecord = { ...RECORD, phase: 'ready', mountId: '9223372036854775809' }
  writeMountRecord(real, top, record)
  const text = fs.readFileSync(`${mountStateDirectory(top, record.directory)}/record.json`, 'utf8')
  expect(text.endsWith('}\n')).toBe(true)
  expect(JSON.parse(text)).toEqual({ ...record, sum: expect.any(Number) })
})
