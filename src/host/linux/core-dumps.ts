import { DATA, data, done, systemCall } from './kernel.ts'

const limitCore = systemCall('limit_core')

/** From now on a crash of this process, or of one it starts, leaves no image of its memory on a disk. */
export function forbidCoreDumps(): void {
  // struct rlimit
  data.fill(0, 0, 16)
  done(limitCore(0, 0, DATA), 'prlimit64', 'RLIMIT_CORE')
}
