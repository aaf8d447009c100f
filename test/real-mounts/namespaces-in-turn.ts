import { closeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { getErrno } from '../../src/kernel/host.ts'
import { createGroupSwapMap } from '../../src/kernel/id-map.ts'
import { openUserNamespace } from '../../src/kernel/linux/mounts.ts'

// In a process of its own: makes user namespaces one after the other. The kernel frees them a moment after their last use,
// so that a limit is met for a moment; one that is held by something is never freed.
const wanted = Number(process.argv[2])
const PATIENCE = 2000
let made = 0
for (let tries = 0; made < wanted && tries < PATIENCE; tries++) {
  try {
    closeSync(openUserNamespace(createGroupSwapMap(1, 2)))
    made++
  } catch (error) {
    if (getErrno(error) !== 'ENOSPC') throw error
    await sleep(5)
  }
}
process.stdout.write(`${made} made\n`)
