import type { Access } from '../tree.ts'

/** Somebody who gives a tree its group. */
export interface Walker {
  name: string
  access: Access
  /** Walks `tree` and returns the milliseconds it took; on a tree it has walked before, there is nothing to do. */
  walk(tree: string): number
  /** After a first walk and another one: everything the walks left outside the tree is gone. */
  finish(): void
}

/** A FlexVolume driver, called as kubelet calls it. */
export interface Driver {
  name: string
  /** Mounts `tree` and returns the milliseconds the call took; mounted already, the call is a repeated one. */
  mount(tree: string): number
  unmount(): void
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
