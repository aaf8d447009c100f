import {
  BLOCK_DEVICE,
  CHARACTER_DEVICE,
  DIRECTORY,
  FIFO,
  FILE_TYPE,
  REGULAR,
  SOCKET,
  SYMLINK,
} from '../../host/host.ts'

const TYPES = {
  file: REGULAR,
  directory: DIRECTORY,
  link: SYMLINK,
  fifo: FIFO,
  socket: SOCKET,
  'block device': BLOCK_DEVICE,
  'character device': CHARACTER_DEVICE,
} as const

/** As documents name it. */
export type InodeType = keyof typeof TYPES

/** @param mode with its type bits */
export function typeOf(mode: number): InodeType {
  const found = Object.entries(TYPES).find(([, bits]) => bits === (mode & FILE_TYPE))
  return (found?.[0] as InodeType | undefined) ?? 'file'
}
