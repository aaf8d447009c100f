import { expect, it } from 'vitest'
import { createContainerExistenceCheck } from '../../src/state/container-record.ts'
import type { Store } from '../../src/state/record-directories.ts'
import { LINEAR, measureGrowth } from '../helpers/work.ts'

const ID = 'c0ffee'.repeat(10)
const ROOT = '20 1 8:1 / / rw,relatime - ext4 /dev/x rw\n'

/** Creates a node with this number of mounts and no processes. */
function storeWith(mounts: number): Store {
  const rows = Array.from(
    { length: mounts },
    (_, at) => `${at + 21} 20 8:1 / /run/task/k8s.io/${at}-${ID}/rootfs rw - ext4 x rw\n`,
  )
  const table = ROOT + rows.join('')
  return {
    config: { stateDir: '/state' },
    host: { mounts: { table: () => table }, processesNow: () => () => false },
  } as never
}

it("a running container is found by a mount point below a directory with the container's exact id", () => {
  const isThere = createContainerExistenceCheck(storeWith(10))
  expect(isThere(`7-${ID}`)).toBe(true)
  expect(isThere(ID)).toBe(false)
})

it('the time to find 100 containers grows no faster than the mount table', () => {
  const search = (mounts: number) => () => {
    const isThere = createContainerExistenceCheck(storeWith(mounts))
    for (let at = 0; at < 100; at++) isThere(`none-${at}`)
  }
  expect(measureGrowth(2000, search)).toBeLessThan(LINEAR)
})
