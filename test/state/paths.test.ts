import { describe, expect, it } from 'vitest'
import { locateMountRecords, locateVolumeRecords } from '../../src/state/record-directories.ts'

const STATE = { config: { stateDir: '/var/lib/modekeep' } }
const MOUNTS = '/var/lib/modekeep/mounts/'

// The directories have lengths around every cut, characters that are encoded as one, three and nine characters, and names
// that look like pieces.
const DIRECTORIES = [
  ...[1, 66, 67, 100, 195, 196, 197, 198, 199, 200, 201, 250, 397, 398, 400, 401, 1000].map((n) => `/${'x'.repeat(n)}`),
  ...[1, 32, 33, 34, 66, 67, 300].map((n) => `/${'é'.repeat(n)}`),
  ...[22, 23, 100].map((n) => `/${'日'.repeat(n)}`),
  ...[66, 67, 68, 133, 134].map((n) => '/x'.repeat(n)),
  `/${'x'.repeat(197)}+`,
  `/${'x'.repeat(197)}/+`,
  `/${'x'.repeat(197)}%2B`,
  `/${'x'.repeat(198)}/record.json`,
  `/${'x'.repeat(198)}/lock`,
  '/a',
  '/a/b',
  '/a%2Fb',
  '/a+b',
  '/a b',
  '/a\nb',
  '/A',
  '/',
  '/...',
  '/var/lib/kubelet/pods/8c03b5d6-1c0e-4d0c-9f5e-0a7b3c1d2e3f/volumes/modekeep~fs/a-volume-of-some-name',
]

function piecesOf(directory: string): string[] {
  return locateMountRecords(STATE, directory).path.slice(MOUNTS.length).split('/')
}

describe('the path of a mount record', () => {
  it.each(DIRECTORIES.map((directory) => [directory]))('has components that a file system permits: %s', (directory) => {
    const pieces = piecesOf(directory)
    expect(locateMountRecords(STATE, directory).path.startsWith(`${MOUNTS}%2F`)).toBe(true)
    expect(pieces.map((piece) => piece.length).filter((length) => length > 255 || length < 1)).toEqual([])
    // encodeURIComponent returns only these characters, so a piece is never ".." and has no byte with another meaning.
    expect(
      pieces.filter((piece, index) => !(index === 0 ? /^%2F[\w%!~*'().-]*$/ : /^\+[\w%!~*'().-]+$/).test(piece)),
    ).toEqual([])
    // The pieces together contain the whole directory.
    expect(decodeURIComponent(pieces.join('').replaceAll('+', ''))).toBe(directory)
  })

  it('is different for every directory, and never a file of another record', () => {
    const places = DIRECTORIES.map((directory) => locateMountRecords(STATE, directory).path)
    expect(new Set(places).size).toBe(DIRECTORIES.length)
    expect(places.filter((place) => /\/(record\.json|lock|boot)(\/|$)/.test(place))).toEqual([])
  })

  it("is readable for a person if the mount is in kubelet's directory", () => {
    expect(locateMountRecords(STATE, '/var/lib/kubelet/pods/8c03/volumes/modekeep~fs/v').path).toBe(
      '/var/lib/modekeep/mounts/%2Fvar%2Flib%2Fkubelet%2Fpods%2F8c03%2Fvolumes%2Fmodekeep~fs%2Fv',
    )
  })
})

it('the records of a volume have a directory apart from mount records and from the sources of pods', () => {
  expect(locateVolumeRecords(STATE, 'fs-2-3').path).toBe('/var/lib/modekeep/ownership/fs-2-3')
})
