import {
  type EntryName,
  getErrno,
  type Handle,
  type Inodes,
  type StatBatch,
  type StatView,
} from '../../src/kernel/host.ts'

interface EntryResult {
  handle?: Handle
  look?: StatView | undefined
  attributeNames?: string | undefined
}

function attempt<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    // An error without errno ends the world, so it is passed on.
    if (getErrno(error) === undefined) throw error
    return undefined
  }
}

/** Inspects several entries by single calls, with the results that the kernel would return for each. */
export function createStatBatch(inodes: Inodes): StatBatch {
  const names: EntryName[] = []
  let seen: EntryResult[] = []
  return {
    size: 4,

    setName(at, block, start, length) {
      names[at] = block.slice(start, start + length)
    },

    nameOf: (at) => names[at] ?? new Uint8Array(),

    look(parent, count) {
      seen = names.slice(0, count).map((name) => ({ look: attempt(() => inodes.viewEntry(parent, name)) }))
    },

    hold(parent, count) {
      seen = names.slice(0, count).map((name) => {
        const handle = attempt(() => inodes.openEntry(parent, name))
        if (handle === undefined) return {}
        const attributeNames = attempt(() => inodes.attributeNames(handle, parent, name))
        return { handle, look: attempt(() => inodes.look(handle)), attributeNames }
      })
    },

    finish() {},
    stat: (at) => seen[at]?.look,
    handle: (at) => seen[at]?.handle,
    attributeNames: (at) => seen[at]?.attributeNames,
  }
}
