import { BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, FILE_TYPE, REGULAR, SYMLINK } from '../../host/host.ts'

const FIFO = 0o010000
const SOCKET = 0o140000

const TYPES = {
  file: { bits: REGULAR, letter: '-' },
  directory: { bits: DIRECTORY, letter: 'd' },
  link: { bits: SYMLINK, letter: 'l' },
  fifo: { bits: FIFO, letter: 'p' },
  socket: { bits: SOCKET, letter: 's' },
  'block device': { bits: BLOCK_DEVICE, letter: 'b' },
  'character device': { bits: CHARACTER_DEVICE, letter: 'c' },
} as const

export type InodeType = keyof typeof TYPES

/** @param mode with its type bits */
export function typeOf(mode: number): InodeType {
  const found = Object.entries(TYPES).find(([, { bits }]) => bits === (mode & FILE_TYPE))
  return (found?.[0] as InodeType | undefined) ?? 'file'
}

/** As `ls -l` has it: `-rwSr-xr-t`. */
export function modeString(type: InodeType, mode: number): string {
  const special = [
    [0o4000, 's'],
    [0o2000, 's'],
    [0o1000, 't'],
  ] as const
  const triples = special.map(([bit, letter], index) => {
    const bits = mode >> (6 - 3 * index)
    const execute = bits & 1 ? 'x' : '-'
    const last = mode & bit ? (bits & 1 ? letter : letter.toUpperCase()) : execute
    return `${bits & 4 ? 'r' : '-'}${bits & 2 ? 'w' : '-'}${last}`
  })
  return TYPES[type].letter + triples.join('')
}
