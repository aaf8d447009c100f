/** Other mounts that are there while a call is measured: on an empty node, and on a very full one. */
export const NODE_SIZES = [1, 5000] as const
export type NodeSize = (typeof NODE_SIZES)[number]

export const NODE_CALLS = ['repeated mount', 'unmount', 'first mount', 'first mount with a walk'] as const
export type NodeCall = (typeof NODE_CALLS)[number]

/** One call on a node with so many mounts, the binary's whole process, in milliseconds. */
export interface NodeMeasurement {
  call: NodeCall
  mounts: NodeSize
  milliseconds: number[]
}

/** How often a call may cost on the full node what it costs on the small one. Nothing is promised of the others. */
export const NODE_TARGETS: Readonly<Partial<Record<NodeCall, number>>> = { 'repeated mount': 1.3, unmount: 1.3 }
