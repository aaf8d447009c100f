import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { type Measured, measured } from './measured.ts'

const MOST_GROWTH = 1.5

/** A node whose volumes and records are in memory, so that a test is about the walk and not about the disk. */
export function memoryNode(): { node: BinaryNode; source: string } {
  const node = new BinaryNode()
  fs.mkdirSync(node.state)
  for (const place of [node.volumes, node.state]) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=80%,nr_inodes=0,mode=0755', 'in-memory', place])
  }
  const source = `${node.volumes}/data`
  fs.mkdirSync(source)
  return { node, source }
}

/** Makes empty files, evenly in so many directories; in the volume's root where that is none. */
export function makeFiles(source: string, files: number, directories: number): void {
  for (let n = 0; n < directories; n++) fs.mkdirSync(`${source}/d${n}`)
  for (let n = 0; n < files; n++) {
    const parent = directories > 0 ? `${source}/d${n % directories}` : source
    fs.closeSync(fs.openSync(`${parent}/f${n}`, 'wx', 0o640))
  }
}

/**
 * Mounts the volume for a group and unmounts it with a restore: all inodes must get the group and go back. Returns what
 * was measured of the two calls.
 */
export async function walkAndRestore(node: BinaryNode, source: string, inodes: number): Promise<Measured[]> {
  const directory = node.podDirectory('a')
  const asked = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
  const calls = [['mount', directory, JSON.stringify(asked)] as const, ['unmount', directory] as const]
  const results: Measured[] = []
  for (const [index, call] of calls.entries()) {
    const result = await measured(node, ...call)
    results.push(result)
    expect(result).toMatchObject({ status: 'Success' })
    expect(node.logLines().at(-1)?.inodes).toEqual({ visited: inodes, changed: inodes, alreadyRight: 0, left: {} })
    expect(count(source, index === 0 ? 2000 : 0)).toBe(inodes)
    expect(result.samples).toBeGreaterThan(5)
  }
  return results
}

// Two batches of 1,200 files and two of as many directories, 32 entries and 32 directories on the way, and the process's own.
const MOST_HANDLES = 4 * 1200 + 64 + 60

/** Neither memory nor handles grow with a volume. @param volumes the calls on the smallest volume, then on larger ones */
export function expectFlat([small = [], ...large]: readonly Measured[][]): void {
  for (const calls of large) {
    for (const [index, call] of calls.entries()) {
      const first = small[index]
      if (first === undefined) throw new Error('nothing to compare with')
      expect(
        call.memory / first.memory,
        `${call.memory} KiB, on the smallest volume ${first.memory}`,
      ).toBeLessThanOrEqual(MOST_GROWTH)
      expect(call.handles).toBeLessThan(MOST_HANDLES)
    }
  }
}

/** How many inodes have the group, told by a tool that also goes below PATH_MAX. */
export function count(source: string, group: number): number {
  const found = execFileSync('find', [source, '-gid', String(group), '-printf', '.'], { maxBuffer: 1 << 24 })
  return found.length
}
