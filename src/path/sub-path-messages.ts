import { quoted } from '../errors/refusal.ts'
import { BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, FIFO, FILE_TYPE, REGULAR, SOCKET, SYMLINK } from '../host/host.ts'

/** A symbolic link in a subPath: its path in the source, and its target as text for people. */
export interface FollowedLink {
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

const formatFileType = (mode: number) => KINDS[mode & FILE_TYPE] ?? 'of an unknown kind'
const formatLink = ({ path, target }: FollowedLink) => `${quoted(path)} -> ${quoted(target)}`
const formatLeadingLink = (link: FollowedLink | undefined) => (link ? `, where the link ${formatLink(link)} leads` : '')

/** Creates the messages about a subPath that cannot be mounted. Their paths are relative to the source. */
export function createSubPathMessages(subPath: string) {
  const subject = `subPath ${quoted(subPath)}`
  return {
    leaves: (link: FollowedLink | undefined) =>
      `${subject} leads out of the source${link ? ` through the link ${formatLink(link)}` : ''}: ` +
      'name something whose links stay inside the source, or mount what lies outside as a source of its own',
    loops: (link: FollowedLink, most: number) =>
      `${subject} goes through more than ${most} links, in a circle it seems, the last being ${formatLink(link)}: ` +
      'correct the links, or name what they should lead to',
    missing: (path: string, link: FollowedLink | undefined) =>
      `${subject} is not in the source: ${quoted(path)} does not exist${formatLeadingLink(link)}; create it there, or correct the name`,
    notDirectory: (path: string, mode: number, link: FollowedLink | undefined) =>
      `${subject} is not in the source: ${quoted(path)} is ${formatFileType(mode)}, not a directory${formatLeadingLink(link)}; correct the name`,
    notFollowed: (path: string) =>
      `${subject} meets the link ${quoted(path)} where links are not followed (a mount with nosymfollow, or /proc): ` +
      'name what it leads to',
    notTrusted: (path: string, uid: number) =>
      `${subject} meets the link ${quoted(path)}, which user ${uid} has made in a directory open to all users: ` +
      'name what it leads to, or let the owner of the directory make the link',
    wrongKind: (mode: number) => `${subject} is ${formatFileType(mode)}: name a directory, a file, a socket or a FIFO`,
  }
}
