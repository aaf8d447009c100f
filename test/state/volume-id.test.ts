import { describe, expect, it } from 'vitest'
import {
  formatVolumeId,
  isPlainVolumeIdPrefix,
  isSameVolumeRoot,
  isTextVolumeId,
  isVolumeId,
  isVolumeNamedByDevice,
  parseRootVolumeId,
  parseVolumeId,
} from '../../src/state/volume-id.ts'

const UUID = '0123456789abcdef0123456789abcdef'
const DIGEST = 'a'.repeat(40)

describe("a volume's identity", () => {
  it.each([
    [`${UUID}-2-abc`, { kind: 'uuid', fileSystem: UUID, inode: 2n, born: 0xabcn }],
    ['ef53.00112233445566ff-1a-0', { kind: 'fsid', fileSystem: 'ef53.00112233445566ff', inode: 26n, born: 0n }],
    [`text-${DIGEST}`, { kind: 'text', digest: DIGEST }],
  ] as const)('%s is parsed and formatted without loss', (text, id) => {
    expect(parseVolumeId(text)).toEqual(id)
    expect(formatVolumeId(id)).toBe(text)
  })

  it.each([
    '',
    '/srv/data',
    'text-',
    `text-${'a'.repeat(39)}`,
    `text-${DIGEST}0`,
    '1.2-3',
    '1.2-3-4-5',
    '../1-2-3',
    '1-2-3\n',
  ])('is not parsed from %j', (text) => {
    expect([parseVolumeId(text), isVolumeId(text), isTextVolumeId(text)]).toEqual([undefined, false, false])
  })

  it('is recognized by every prefix of its text, and a path is never such a prefix', () => {
    for (const text of [`${UUID}-2-abc`, 'ef53.01-1a-0', `text-${DIGEST}`])
      for (let length = 1; length <= text.length; length++)
        expect(isPlainVolumeIdPrefix(text.slice(0, length))).toBe(true)
    for (const text of ['', '.', '..', '/srv', 'data', '1-2-3-4']) expect(isPlainVolumeIdPrefix(text)).toBe(false)
  })

  it('matches a root only if both inode number and birth time are equal', () => {
    const id = parseRootVolumeId('1.2-1a-5')
    expect(isSameVolumeRoot(id, { inode: 26n, born: 5n })).toBe(true)
    expect(isSameVolumeRoot(id, { inode: 27n, born: 5n })).toBe(false)
    expect(isSameVolumeRoot(id, { inode: 26n, born: 0n })).toBe(false)
    expect(isSameVolumeRoot(parseRootVolumeId(`text-${DIGEST}`), { inode: 26n, born: 5n })).toBe(false)
  })

  it('depends on the device number only if it is made of f_fsid on xfs', () => {
    expect(['58465342.1-2-3', 'ef53.58465342-2-3', '58465342-2-3'].map(isVolumeNamedByDevice)).toEqual([
      true,
      false,
      false,
    ])
  })
})
