import type { EntryName, Inodes, StatBatch } from '../../src/kernel/host.ts'

/** Of each entry it has failed, so that the walk asks for it alone. */
function blind(): StatBatch {
  const names: EntryName[] = []
  return {
    size: 32,
    setName(at, block, start, length) {
      names[at] = block.slice(start, start + length)
    },
    nameOf: (at) => names[at] ?? new Uint8Array(),
    look() {},
    hold() {},
    finish() {},
    stat: () => undefined,
    handle: () => undefined,
    attributeNames: () => undefined,
  }
}

/** The same inodes, but a walk makes each call for itself, where a test can stand in its way. */
export function disableBatches(inodes: Inodes): Inodes {
  return { ...inodes, statBatches: () => [blind(), blind()], changes: () => undefined }
}
