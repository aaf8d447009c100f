const F_FSID_SIZE = 8

/**
 * Whether a btrfs may have this UUID. Of 16 bytes f_fsid has two words, folded (fs/btrfs/super.c): the first is the same
 * for all subvolumes, the other tells them apart.
 * @param id what `Inodes.fileSystemId` says of it
 */
export function mayHaveUuid(id: string, uuid: Buffer): boolean {
  const [, words] = id.split('.')
  if (words === undefined) return id === uuid.toString('hex')
  const fsid = Buffer.from(words, 'hex')
  return fsid.length === F_FSID_SIZE && fsid.readUInt32LE(0) === (uuid.readUInt32BE(0) ^ uuid.readUInt32BE(8)) >>> 0
}
