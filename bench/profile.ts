import * as fs from 'node:fs'
import { run } from '../scripts/fetch/command.ts'
import { BINARY, Node } from './peers/modekeep.ts'
import { type Counts, differences, readCounts, total } from './syscalls.ts'
import { makeTree } from './tree.ts'
import { mountVolume } from './volume.ts'

/** Counts the system calls of a repeated mount of a volume of 10 files and of a `large` one, and says if they are equal. */
export function profile(workDirectory: string, volumes: string, large: number): string {
  const sizes = [10, large]
  mountVolume('tmpfs', volumes, 0)
  const [few, many] = sizes.map((files) => repeatedMount(workDirectory, volumes, files))
  if (!few || !many) throw new Error('nothing was counted')
  const different = differences(few, many)
  return [
    `System calls of a repeated mount, without those of threads and heap that vary by chance:`,
    `10 files: ${total(few)}   ${large.toLocaleString('en')} files: ${total(many)}   ${different.length ? 'not equal' : 'equal'}`,
    ...different,
    '',
    `${Object.entries(many)
      .sort()
      .map(([name, calls]) => `${name} ${calls}`)
      .join(', ')}`,
    '',
  ].join('\n')
}

function repeatedMount(workDirectory: string, volumes: string, files: number): Counts {
  const tree = `${volumes}/${files}`
  const output = `${workDirectory}/strace`
  const node = new Node(`${workDirectory}/node`, volumes)
  makeTree(tree, files)
  node.mount(tree, {})
  run('strace', ['-f', '-c', '-o', output, BINARY, ...node.mountCall(tree, {})], { env: node.environment })
  node.unmount()
  return readCounts(fs.readFileSync(output, 'utf8'))
}
