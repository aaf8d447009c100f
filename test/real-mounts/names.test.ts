import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const SLASH = 0x2f
const DOT = 0x2e

/** Every name of one byte that the kernel knows, and names that tools stumble over. */
const NAMES = [
  ...Array.from({ length: 255 }, (_, n) => Buffer.of(n + 1)).filter(([byte]) => byte !== SLASH && byte !== DOT),
  ...['...', '..a', ' ', '-rf', '--', '*', '%s%n', '$(x)', '\\n', '"', "'", '\u202e', '\ufeff', 'a\nb', '\r', 'é'].map(
    (name) => Buffer.from(name),
  ),
  Buffer.alloc(255, 0xff),
  Buffer.alloc(255, 'é'),
  Buffer.from([0xed, 0xa0, 0x80]), // a surrogate
  Buffer.from([0xc0, 0xae, 0xc0, 0xae]), // ".." in a form that UTF-8 forbids
]
const UNIQUE = [...new Map(NAMES.map((name) => [name.toString('hex'), name])).values()]

onKernelStages('file names', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const walk = () =>
    stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' })
  const at = (...names: Uint8Array[]) =>
    Buffer.concat([Buffer.from(source), ...names.flatMap((name) => [Buffer.from('/'), name])])
  /** How many inodes have the group, told by a tool that reads names as bytes. */
  const count = (group: number) =>
    execFileSync('find', [source, '-gid', String(group), '-printf', '.']).toString().length

  it('of any bytes are walked and restored, for files, directories and their content', async () => {
    makeTree(stage.fs, source, ['dir files 0755', 'dir directories 0755'])
    for (const name of UNIQUE) {
      stage.fs.writeFileSync(at(Buffer.from('files'), name), '')
      stage.fs.mkdirSync(at(Buffer.from('directories'), name))
      stage.fs.writeFileSync(at(Buffer.from('directories'), name, name), '')
    }
    const all = 3 + 3 * UNIQUE.length
    await walk()
    expect(stage.noted.inodes).toMatchObject({ visited: all, changed: all, left: {} })
    expect(count(2000)).toBe(all)
    await stage.unmount('a')
    expect(stage.noted.inodes).toMatchObject({ visited: all, changed: all, left: {} })
    expect(count(0)).toBe(all)
  })

  it('are distinct in a report that is valid text', async () => {
    makeTree(stage.fs, source, [])
    const links = ['a\nb', '"', '\\'].map((name) => Buffer.from(name))
    for (const name of links) stage.fs.symlinkSync('nowhere', at(name))
    await walk()
    const { symlink } = (stage.noted.inodes as { left: { symlink: { count: number; examples: string[] } } }).left
    expect(symlink.count).toBe(links.length)
    expect(symlink.examples.sort()).toEqual(['"', '\\', 'a\nb'])
  })
})
