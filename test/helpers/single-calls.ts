import type { Inodes, Name, Sights } from '../../src/host/host.ts'

const names: Name[] = []

/** Of each entry it has failed, so that the walk asks for it alone. */
const BLIND: Sights = {
  size: 32,
  setName(at, block, start, length) {
    names[at] = block.slice(start, start + length)
  },
  nameOf: (at) => names[at] ?? new Uint8Array(),
  look() {},
  hold() {},
  stat: () => undefined,
  handle: () => undefined,
  attributeNames: () => undefined,
}

/** The same inodes, but a walk makes each call for itself, where a test can stand in its way. */
export function singleCalls(inodes: Inodes): Inodes {
  return { ...inodes, sights: () => BLIND, changes: () => undefined }
}
