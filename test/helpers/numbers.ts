/** Numbers from 0 to below 1, the same again for the same seed, and others for the next. */
export function createRandom(seed: number): () => number {
  let state = mixed(seed)
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Seeds that differ by one would begin alike. */
function mixed(seed: number): number {
  let bits = seed | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
