import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { write } from './atomic-writer.ts'

describe('the atomic writer of the tests', () => {
  let volume: string
  beforeEach(() => {
    volume = fs.mkdtempSync(`${tmpdir()}/modekeep-volume-`)
  })
  afterEach(() => fs.rmSync(volume, { recursive: true }))

  const names = () => fs.readdirSync(volume).sort()
  const shown = (path: string) => fs.readFileSync(`${volume}/${path}`, 'utf8')

  it('shows files through a link to the data directory, which links to a dated directory', () => {
    const dated = basename(write(volume, { a: 'one', 'dir/b': 'two' }))
    expect(dated).toMatch(/^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$/)
    expect(names()).toEqual(['..data', 'a', 'dir', dated].sort())
    expect(fs.readlinkSync(`${volume}/..data`)).toBe(dated)
    expect(fs.readlinkSync(`${volume}/a`)).toBe('..data/a')
    expect(fs.readlinkSync(`${volume}/dir`)).toBe('..data/dir')
    expect([shown('a'), shown('dir/b')]).toEqual(['one', 'two'])
  })

  it('changes all files with one rename, and deletes the earlier directory', () => {
    const before = write(volume, { a: 'one', b: 'one' })
    const held = fs.openSync(`${volume}/a`, 'r')
    const link = fs.lstatSync(`${volume}/a`).ino
    const after = write(volume, { a: 'two', b: 'two' })
    expect([shown('a'), shown('b')]).toEqual(['two', 'two'])
    expect(fs.existsSync(before)).toBe(false)
    expect(names()).toEqual(['..data', 'a', 'b', basename(after)].sort())
    expect(fs.lstatSync(`${volume}/a`).ino).toBe(link)
    expect(fs.fstatSync(held).nlink).toBe(0)
    fs.closeSync(held)
  })

  it('removes the links of removed files', () => {
    write(volume, { a: 'one', b: 'one', 'dir/c': 'one' })
    const after = write(volume, { a: 'one' })
    expect(names()).toEqual(['..data', 'a', basename(after)].sort())
  })

  it('does not touch a volume that already has the content', () => {
    const before = write(volume, { a: 'one', 'dir/b': 'one' })
    expect(write(volume, { a: 'one', 'dir/b': 'one' })).toBe(before)
    expect(write(volume, { a: 'one', 'dir/c': 'one' })).not.toBe(before)
  })
})
