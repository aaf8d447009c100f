import type { Handle, Host, Stat } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, RECORD_FILE, type Store, volumePlace } from './places.ts'
import { isTextIdentity } from './volume-record.ts'

/** The names of a volume whose root tells what it is: file system id, root inode, birth time. */
export interface Names {
  /** By what the kernel that runs says of the file system. */
  now: string
  /** By what it says to kernels before 6.9, where that is another one and nobody else's. */
  former: string | undefined
}

export function namesOf({ inodes }: Pick<Host, 'inodes'>, root: Handle, { inode, born }: Stat): Names {
  const named = (fileSystem: string) => `${fileSystem}-${inode.toString(16)}-${born.toString(16)}`
  const [id, former] = [inodes.fileSystemId(root), inodes.formerFileSystemId(root)]
  // Root inodes are alike everywhere: without its birth time another file system's root could pass for it.
  const hasFormer = former !== undefined && former !== id && born !== 0n
  return { now: named(id), former: hasFormer ? named(former) : undefined }
}

/**
 * Names a volume across reboots and whatever path leads to it. One that was walked before the node's kernel was upgraded
 * keeps the name that its records have until it is restored: a name lasts as long as its records, and nothing is moved.
 */
export function volumeIdentity(store: Store, root: Handle, stat: Stat): string {
  const { now, former } = namesOf(store.host, root, stat)
  return former !== undefined && isRecorded(store, former) && !isRecorded(store, now) ? former : now
}

// include/uapi/linux/magic.h
const XFS = '58465342.'

/** Of xfs f_fsid is the number of its device: another boot gives that to another one, and a new UUID does not change it. */
export const isNamedByDevice = (volume: string): boolean => volume.startsWith(XFS)

/** Whether a record or a journal is there, also where nobody can tell what it says. Opens neither: most calls ask. */
export function isRecorded(store: Store, volume: string): boolean {
  const names = store.host.files.list(volumePlace(store, volume).path)
  return names.includes(RECORD_FILE) || names.includes(JOURNAL_FILE)
}

/**
 * Under the lock of a volume nobody else begins or ends its records, so its name is what it was when it was looked for,
 * or another call has ended them since. Two calls would then have two locks for one volume.
 * @throws {Refusal}
 */
export function refuseRenamed(store: Store, volume: string, root: Handle, source: string): void {
  if (isTextIdentity(volume)) return
  const stat = store.host.inodes.stat(root)
  const { now, former } = namesOf(store.host, root, stat)
  // A volume's tree may show a root that is not its own.
  if (former === undefined || (volume !== now && volume !== former)) return
  if (volumeIdentity(store, root, stat) === volume) return
  throw new Refusal(`another call has put ${source} back meanwhile, so it has another name on record: call this again`)
}
