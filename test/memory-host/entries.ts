import type { EntryName, Inodes } from '../../src/kernel/host.ts'
import { type MemoryWorld, text } from './world.ts'

type Entries = Pick<
  Inodes,
  'createFile' | 'createDirectory' | 'removeFile' | 'removeDirectory' | 'readEntries' | 'seekEntries'
>

/** Creates the operations on names of directories. */
export function memoryEntries(world: MemoryWorld): Entries {
  return {
    createFile(parent, name, mode) {
      const place = world.child(world.at(parent), text(name))
      world.act(`mknod ${world.pathOf(place)}`)
      place.mount.fileSystem.fs.writeFileSync(place.path, '', { mode, flag: 'wx' })
    },

    createDirectory(parent, name, mode) {
      const place = world.child(world.at(parent), text(name))
      world.act(`mkdir ${world.pathOf(place)}`)
      place.mount.fileSystem.fs.mkdirSync(place.path, mode)
    },

    removeFile(parent, name) {
      const place = world.child(world.at(parent), text(name))
      world.act(`unlink ${world.pathOf(place)}`)
      place.mount.fileSystem.fs.unlinkSync(place.path)
    },

    removeDirectory(parent, name) {
      const place = world.child(world.at(parent), text(name))
      world.act(`rmdir ${world.pathOf(place)}`)
      place.mount.fileSystem.fs.rmdirSync(place.path)
    },

    readEntries(directory) {
      const place = world.at(directory)
      const { fs } = place.mount.fileSystem
      const names = fs.readdirSync(place.path || '/') as string[]
      const inodeOf = (name: string) => fs.lstatSync(`${place.path}/${name}`, { bigint: true }).ino
      const entries = toDirents(
        names.slice(place.position).map((name) => Buffer.from(name)),
        place.position,
        names.slice(place.position).map(inodeOf),
      )
      place.position = names.length
      return entries
    },

    seekEntries(directory, next) {
      world.at(directory).position = Number(next)
    },
  }
}

// struct linux_dirent64 (getdents64(2)): u64 ino, s64 off, u16 length, u8 type, the name and its NUL.
const OFF = 8
const LENGTH = 16
const NAME = 19

/**
 * Encodes `names` as one block with unknown types. The entry with index i has the next position `first + i + 1`.
 * @param inodes the number of each entry's inode
 */
export function toDirents(names: readonly EntryName[], first: number, inodes: readonly bigint[] = []): Uint8Array {
  return Buffer.concat(
    names.map((name, index) => {
      const entry = Buffer.alloc((NAME + name.length + 1 + 7) & ~7)
      entry.writeBigUInt64LE(inodes[index] ?? 0n, 0)
      entry.writeBigInt64LE(BigInt(first + index + 1), OFF)
      entry.writeUInt16LE(entry.length, LENGTH)
      entry.set(name, NAME)
      return entry
    }),
  )
}
