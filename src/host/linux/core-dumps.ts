import { SYS_PRLIMIT64 } from './constants.ts'
import { address, libc, run, view } from './libc.ts'

const RLIMIT_CORE = 4n

/** From now on a crash of this process, or of one it starts, leaves no image of its memory on a disk. */
export function forbidCoreDumps(): void {
  run('prlimit64', 'RLIMIT_CORE', () => {
    view('struct').fill(0, 0, 16)
    return libc.syscall(SYS_PRLIMIT64, 0n, RLIMIT_CORE, address('struct'), 0n, 0n, 0n)
  })
}
