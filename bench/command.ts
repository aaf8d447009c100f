/** Milliseconds from before to after `work`. */
export function timed(work: () => void): number {
  const before = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - before) / 1e6
}

export function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}
