import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { decodePodSecrets } from '../../src/config/json-options.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import type { CsiMessage } from '../../src/frontends/csi/messages.ts'
import { parsePublishRequest } from '../../src/frontends/csi/publish-request.ts'
import { parseTargetPath } from '../../src/frontends/csi/target-path.ts'
import { parseMountDirectory } from '../../src/frontends/flexvolume/protocol.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { LINEAR, measureGrowth } from '../helpers/work.ts'

const DIRECTORY = '/pods/p/volumes/modekeep~fs/v'
const UID = 'f7aea1c3-1111-2222-3333-444455556666'
const TARGET = `/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/v/mount`
const MIB = 2 ** 20

function faultsOf(run: () => void): readonly string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal) return error.faults.map((fault) => renderFault(fault))
    throw error
  }
  return []
}

const read = (options: Record<string, string>) =>
  parseFlexVolumeRequest(DIRECTORY, JSON.stringify({ source: '/srv/a', ...options }), DEFAULT_CONFIG, volumeKindLookup)

const publish = (over: Partial<CsiMessage<'NodePublishVolumeRequest'>>, more: Record<string, string> = {}) =>
  parsePublishRequest({
    volumeId: 'v',
    targetPath: TARGET,
    volumeCapability: {
      block: undefined,
      mount: { fsType: '', mountFlags: [], volumeMountGroup: '' },
      accessMode: { mode: 1 },
    },
    readonly: false,
    secrets: {},
    volumeContext: {
      'csi.storage.k8s.io/pod.name': 'p',
      'csi.storage.k8s.io/pod.namespace': 'shop',
      'csi.storage.k8s.io/pod.uid': UID,
      'csi.storage.k8s.io/ephemeral': 'true',
      ...more,
    },
    ...over,
  })

const longPath = '/a'.repeat(2048)
const longName = `/srv/${'n'.repeat(256)}`
const TOO_LONG_PATH = 'a path has at most 4095 bytes'
const TOO_LONG_NAME = 'a name has at most 255 bytes'
const TOO_LONG = 'at most 4095 are accepted'

describe('a call whose input is too large is refused', () => {
  it.each<[string, string, () => void]>([
    ['source', TOO_LONG_PATH, () => read({ source: longPath })],
    ['a name in source', TOO_LONG_NAME, () => read({ source: longName })],
    ['an export', TOO_LONG_PATH, () => read({ source: `host:${longPath}`, 'kubernetes.io/fsType': 'nfs' })],
    ['subPath', TOO_LONG_PATH, () => read({ subPath: longPath.slice(1).padEnd(4096, 'b') })],
    ['a name in subPath', TOO_LONG_NAME, () => read({ subPath: longName.slice(1) })],
    ['a name with letters of two bytes', TOO_LONG_NAME, () => read({ subPath: 'ä'.repeat(128) })],
    ['mountOptions', TOO_LONG, () => read({ mountOptions: 'noatime,'.repeat(600) })],
    ['ownership', TOO_LONG, () => read({ ownership: 'x'.repeat(4096) })],
    ['kubernetes.io/pod.name', TOO_LONG, () => read({ 'kubernetes.io/pod.name': 'x'.repeat(4096) })],
    ['the options', `at most ${2 * MIB} are accepted`, () => read({ 'kubernetes.io/new': 'x'.repeat(2 * MIB) })],
    ['a Secret', `at most ${MIB} are accepted`, () => read({ 'kubernetes.io/secret/a': 'AAAA'.repeat(350_000) })],
    ['a decoded Secret', `at most ${MIB} are accepted`, () => decodePodSecrets(secret(1_400_004))],
    ['the mount directory', TOO_LONG_PATH, () => parseMountDirectory(longPath)],
    ['volume_id', TOO_LONG, () => publish({ volumeId: 'x'.repeat(4096) })],
    ['volume_id of an unpublish', TOO_LONG, () => parseTargetPath('x'.repeat(4096), TARGET)],
    ['target_path', TOO_LONG_PATH, () => publish({ targetPath: longPath })],
    ['target_path of an unpublish', TOO_LONG_PATH, () => parseTargetPath('v', longPath)],
    ['an attribute', TOO_LONG, () => publish({}, { source: longPath })],
    ['an attribute subPath', TOO_LONG_PATH, () => publish({}, { subPath: longPath })],
    ['a Secret of CSI', `at most ${MIB} are accepted`, () => publish({ secrets: { a: 'x'.repeat(MIB + 1) } })],
    [
      'mount_flags',
      TOO_LONG,
      () =>
        publish({
          volumeCapability: {
            block: undefined,
            mount: { fsType: '', mountFlags: Array(600).fill('noatime'), volumeMountGroup: '' },
            accessMode: { mode: 1 },
          },
        }),
    ],
  ])('%s', (_what, message, run) => {
    const faults = faultsOf(run)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(message)
  })

  it.each<[string, () => void]>([
    ['a path of 4,095 bytes', () => read({ source: `${'/a'.repeat(2047)}b` })],
    ['a name of 255 bytes', () => read({ source: `/srv/${'n'.repeat(255)}` })],
    ['a Secret of 1 MiB', () => publish({ secrets: { a: 'x'.repeat(MIB) } })],
    ['a key of a newer kubelet', () => read({ 'kubernetes.io/new': 'x'.repeat(MIB) })],
  ])('a call with the largest accepted input is not refused: %s', (_what, run) => {
    expect(faultsOf(run)).toEqual([])
  })
})

describe('the time to parse options grows at most in proportion to their size', () => {
  it.each<[string, (count: number) => Record<string, string>]>([
    ['source', (count) => ({ source: '/a'.repeat(count / 4) })],
    ['subPath', (count) => ({ subPath: 'a/'.repeat(count / 4).slice(0, -1) })],
    ['mountOptions', (count) => ({ mountOptions: 'x,noatime,'.repeat(count / 20) })],
    ['unknown keys', (count) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 'x']))],
    [
      'keys of Secrets',
      (count) => Object.fromEntries(names(count).map((at) => [`kubernetes.io/secret/${at}`, 'AAAA'])),
    ],
  ])('%s', (_what, make) => {
    expect(measureGrowth(8000, (count) => () => void faultsOf(() => read(make(count))))).toBeLessThan(LINEAR)
  })
})

function secret(size: number): string {
  return JSON.stringify({ 'kubernetes.io/secret/a': 'A'.repeat(size) })
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `n${at}`)
}
