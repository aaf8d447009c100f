import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { BINARY } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { count, expectFlat, makeFiles, memoryNode, walkAndRestore } from './large-volume.ts'
import type { Measured } from './measured.ts'

const DEPTH = 5000
const title = `large volumes${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

// One directory more at a time, relative to the one before: the whole path is a million bytes long.
const DEEPER = `
for (let level = 0; level < ${DEPTH}; level++) {
  fs.mkdirSync('n'.repeat(200))
  process.chdir('n'.repeat(200))
}
fs.writeFileSync('end', '')`

describe.skipIf(!isRoot)(title, () => {
  it(`a volume of ${DEPTH} nested directories is walked and restored with far fewer open handles`, async () => {
    const { node, source } = memoryNode()
    execFileSync(process.execPath, ['-e', DEEPER], { cwd: source })
    for (const { handles } of await walkAndRestore(node, source, DEPTH + 2)) expect(handles).toBeLessThan(DEPTH / 2)
  })

  it('a large volume is walked and restored with the memory and the open handles of a small volume', async () => {
    const volumes: Measured[][] = []
    for (const files of [10_000, sized(50_000, 100_000)]) {
      const { node, source } = memoryNode()
      makeFiles(source, files, 0)
      volumes.push(await walkAndRestore(node, source, files + 1))
    }
    expectFlat(volumes)
  })

  it.each([256, 1024])('a large volume is walked and restored by a process that may open %i files', (limit) => {
    const { node, source } = memoryNode()
    makeFiles(source, 6000, 20)
    const call = (...args: string[]) => {
      const limited = ['-c', `ulimit -n ${limit} && exec "$@"`, 'sh', BINARY, ...args]
      return JSON.parse(execFileSync('sh', limited, { env: { MODEKEEP_CONFIG: `${node.top}/config.json` } }).toString())
    }
    const directory = node.podDirectory('a')
    const asked = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    expect(call('mount', directory, JSON.stringify(asked))).toEqual({ status: 'Success' })
    expect(count(source, 2000)).toBe(6021)
    expect(call('unmount', directory)).toEqual({ status: 'Success' })
    expect(count(source, 0)).toBe(6021)
  })
})
