import { BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, FIFO, FILE_TYPE, REGULAR, SOCKET, SYMLINK } from '../host/host.ts'
import { quoted } from '../refusal/refusal.ts'

/** A link met on the way: where it is in the source, and its target as text for people. */
export interface Link {
  path: string
  target: string
}

const KINDS: Readonly<Record<number, string>> = {
  [DIRECTORY]: 'a directory',
  [REGULAR]: 'a file',
  [SYMLINK]: 'a link',
  [FIFO]: 'a FIFO',
  [SOCKET]: 'a socket',
  [BLOCK_DEVICE]: 'a block device',
  [CHARACTER_DEVICE]: 'a character device',
}

const typeName = (mode: number) => KINDS[mode & FILE_TYPE] ?? 'of an unknown kind'
const arrow = ({ path, target }: Link) => `${quoted(path)} -> ${quoted(target)}`
const led = (link: Link | undefined) => (link ? `, where the link ${arrow(link)} leads` : '')

/** What a pod's author is told of a subPath that cannot be mounted. Paths are those in the source. */
export function sentences(subPath: string) {
  const asked = `subPath ${quoted(subPath)}`
  return {
    leaves: (link: Link | undefined) =>
      `${asked} leads out of the source${link ? ` through the link ${arrow(link)}` : ''}: ` +
      'name something whose links stay inside the source, or mount what lies outside as a source of its own',
    loops: (link: Link, most: number) =>
      `${asked} goes through more than ${most} links, in a circle it seems, the last being ${arrow(link)}: ` +
      'correct the links, or name what they should lead to',
    missing: (path: string, link: Link | undefined) =>
      `${asked} is not in the source: ${quoted(path)} does not exist${led(link)}; create it there, or correct the name`,
    notDirectory: (path: string, mode: number, link: Link | undefined) =>
      `${asked} is not in the source: ${quoted(path)} is ${typeName(mode)}, not a directory${led(link)}; correct the name`,
    notFollowed: (path: string) =>
      `${asked} meets the link ${quoted(path)} where links are not followed (a mount with nosymfollow, or /proc): ` +
      'name what it leads to',
    notTrusted: (path: string, uid: number) =>
      `${asked} meets the link ${quoted(path)}, which user ${uid} has made in a directory open to all users: ` +
      'name what it leads to, or let the owner of the directory make the link',
    wrongKind: (mode: number) => `${asked} is ${typeName(mode)}: name a directory, a file, a socket or a FIFO`,
  }
}
