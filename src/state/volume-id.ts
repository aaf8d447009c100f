import type { Stat } from '../kernel/host.ts'

/**
 * Identity of a volume. Records, directories, messages and commands have its text: see `formatVolumeId`.
 * `uuid` and `fsid` are the two names of a file system (see `readFileSystemId`), with the inode number and the birth time
 * of the volume's root. `text` is a volume of a server or a daemon, whose root does not identify it: the digest of the
 * request.
 */
export type VolumeId = RootVolumeId | { readonly kind: 'text'; readonly digest: string }

export interface RootVolumeId extends Pick<Stat, 'inode' | 'born'> {
  readonly kind: 'uuid' | 'fsid'
  readonly fileSystem: string
}

/** Returns the identity of a root on a file system. Only a name by f_fsid has a dot. */
export function createRootVolumeId(fileSystem: string, { inode, born }: Pick<Stat, 'inode' | 'born'>): RootVolumeId {
  return { kind: fileSystem.includes('.') ? 'fsid' : 'uuid', fileSystem, inode, born }
}

/** Returns undefined for any other text, such as a path. */
export function parseVolumeId(text: string): VolumeId | undefined {
  const [, digest, fileSystem = '', inode, born] =
    /^(?:text-([0-9a-f]{40})|([0-9a-f.]+)-([0-9a-f]+)-([0-9a-f]+))$/.exec(text) ?? []
  if (digest !== undefined) return { kind: 'text', digest }
  if (inode === undefined) return undefined
  return createRootVolumeId(fileSystem, { inode: BigInt(`0x${inode}`), born: BigInt(`0x${born}`) })
}

export function formatVolumeId(id: VolumeId): string {
  if (id.kind === 'text') return `text-${id.digest}`
  return `${id.fileSystem}-${id.inode.toString(16)}-${id.born.toString(16)}`
}

/** Returns undefined for a volume that its root does not identify. */
export function parseRootVolumeId(text: string): RootVolumeId | undefined {
  const id = parseVolumeId(text)
  return id?.kind === 'text' ? undefined : id
}

export const isVolumeId = (text: string): boolean => parseVolumeId(text) !== undefined

/** Returns whether a word may be the beginning of a volume's identity. A path never is. */
export function isPlainVolumeIdPrefix(word: string): boolean {
  return /^(t|te|tex|text|text-[0-9a-f]*|[0-9a-f.]+(-[0-9a-f]*){0,2})$/.test(word) && /[^.]/.test(word)
}

/** Returns whether a volume is identified by the text of its request: its source is no path of the node. */
export const isTextVolumeId = (volume: string): boolean => parseVolumeId(volume)?.kind === 'text'

/** Returns whether a root has the inode number and the birth time of a volume's root. */
export function isSameVolumeRoot(id: RootVolumeId | undefined, { inode, born }: Pick<Stat, 'inode' | 'born'>): boolean {
  return id?.inode === inode && id.born === born
}

// include/uapi/linux/magic.h
export const FILE_SYSTEM_MAGICS = {
  btrfs: '9123683e',
  ext4: 'ef53',
  overlay: '794c7630',
  tmpfs: '1021994',
  xfs: '58465342',
  zfs: '2fc12fc1',
}

/** Returns the type of the file system as in linux/magic.h; undefined for a UUID, which does not name it. */
export function parseFileSystemMagic({ kind, fileSystem }: RootVolumeId): string | undefined {
  return kind === 'fsid' ? fileSystem.split('.', 1)[0] : undefined
}

/** Returns whether f_fsid names a volume by the number of its device, as on xfs. A new UUID does not change that name. */
export function isVolumeNamedByDevice(volume: string): boolean {
  const id = parseRootVolumeId(volume)
  return id !== undefined && parseFileSystemMagic(id) === FILE_SYSTEM_MAGICS.xfs
}
