import type { Cost } from '../command.ts'
import type { Walk } from '../results.ts'
import type { Access } from '../tree.ts'

/** Somebody who does something with all inodes of a tree. */
export interface Walker {
  name: string
  /** What is on disk after the first walk. */
  access: Access
  /** On a tree that is as before anybody's walk, in the order of `WALKS`. */
  walks: Partial<Record<Walk, (tree: string) => Cost>>
  /** Looks twice at an inode that has just been changed, as those of a volume in use have not. */
  isRecording?: boolean
  /** After all of them: everything the walks left outside the tree is gone. */
  finish?(): void
}

/** A command of a short run; a FlexVolume driver is called as kubelet calls it. */
export interface Caller {
  name: string
  /** With what is mounted already, a mount call is a repeated one. */
  call(tree: string): Cost
  finish?(): void
}

// What kubelet 1.20 sends with a mount call.
const FROM_KUBELET = {
  'kubernetes.io/fsType': '',
  'kubernetes.io/mounterArgs.FsGroup': '2000',
  'kubernetes.io/pod.name': 'bench',
  'kubernetes.io/pod.namespace': 'default',
  'kubernetes.io/pod.uid': '8c03a5bc-3a2f-44a0-8ac8-5c1a4b8b2f10',
  'kubernetes.io/pvOrVolumeName': 'v',
  'kubernetes.io/readwrite': 'rw',
  'kubernetes.io/serviceAccount.name': '',
}

/** The second argument of a mount call. */
export function mountOptions(source: string, options: Record<string, string> = {}): string {
  return JSON.stringify({ ...FROM_KUBELET, source, ...options })
}
