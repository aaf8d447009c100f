const F_FSID_SIZE = 8

/** Folds the UUID into two words and combines them with the subvolume's number (fs/btrfs/super.c). */
export function computeSubvolumeFsid(uuid: Buffer, subvolume: bigint): Buffer {
  const fsid = Buffer.alloc(F_FSID_SIZE)
  const fold = (offset: number) => uuid.readUInt32BE(offset) ^ uuid.readUInt32BE(offset + 8)
  fsid.writeUInt32LE((fold(0) ^ Number(BigInt.asIntN(32, subvolume >> 32n))) >>> 0, 0)
  fsid.writeUInt32LE((fold(4) ^ Number(BigInt.asIntN(32, subvolume))) >>> 0, 4)
  return fsid
}

/**
 * Checks whether a btrfs can have this UUID. All its subvolumes have the same first word of f_fsid.
 * @param id as `Inodes.fileSystemId` returns it
 */
export function isPossibleBtrfsUuid(id: string, uuid: Buffer): boolean {
  const [, words] = id.split('.')
  if (words === undefined) return id === uuid.toString('hex')
  const fsid = Buffer.from(words, 'hex')
  return fsid.length === F_FSID_SIZE && fsid.readUInt32LE(0) === computeSubvolumeFsid(uuid, 0n).readUInt32LE(0)
}
