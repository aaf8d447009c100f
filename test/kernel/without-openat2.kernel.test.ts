import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { makeTree } from '../helpers/tree.ts'
import { openParts, openPaths } from './open-paths.ts'

const PROGRAM = `${import.meta.dirname}/open-paths.ts`
const suiteTitle = `before Linux 5.6${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(suiteTitle, () => {
  function arrange(): string {
    const top = fs.realpathSync(fs.mkdtempSync(`${tmpdir()}/modekeep-openat2-`))
    onTestFinished(() => fs.rmSync(top, { recursive: true, force: true }))
    makeTree(fs, top, ['file d/e/f 0600', 'dir d/sealed 0000', 'link d/l e', 'link to-d d', 'link dangling nowhere'])
    execFileSync('mkfifo', [`${top}/fifo`])
    return top
  }

  /** Returns the same results from a process without openat2, and the number of its calls of openat2. */
  function older(paths: readonly string[], source: string, subPaths: readonly string[]) {
    const trace = `${source}/trace`
    const inject = ['-f', '-e', 'trace=openat2', '-e', 'inject=openat2:error=ENOSYS', '-o', trace]
    const node = [process.execPath, PROGRAM]
    const text = execFileSync('strace', [...inject, ...node, JSON.stringify([paths, source, subPaths])], {
      encoding: 'utf8',
    })
    const calls = fs
      .readFileSync(trace, 'utf8')
      .split('\n')
      .filter((line) => line.includes('openat2('))
    fs.rmSync(trace)
    const { results, kept } = JSON.parse(text) as { results: [string[], string[]]; kept: number }
    return { results, kept, calls: calls.length }
  }

  it('paths and subPaths lead to the same inodes and errors, and openat2 is tried once', () => {
    const top = arrange()
    const below = ['', '/', '//d//e/', '/d/e/f', '/d/./e', '/d/e/..', '/fifo', '/d/sealed', '/d/sealed/x']
    const bad = ['/d/e/f/', '/d/e/f/x', '/fifo/x', '/no', '/no/x', '/d/e/no', `/${'n'.repeat(256)}`]
    const links = ['/to-d', '/to-d/', '/to-d/e', '/d/l', '/d/l/', '/d/l/f', '/dangling', '/dangling/x', '/no/to-d']
    const paths = [
      '/',
      '//',
      '/proc/self/root',
      '/proc/self/root/etc',
      ...[...below, ...bad, ...links].map((path) => top + path),
    ]
    const subPaths = ['d/e/f', 'd/l/f', 'to-d/l', 'fifo', 'fifo/x', 'no/x', 'dangling', 'd/e']
    const { results, kept, calls } = older(paths, top, subPaths)
    expect(results).toEqual([openPaths(paths), openParts(top, subPaths)])
    expect(kept).toBe(0)
    expect(calls).toBe(1)
    expect(new Set(results[0])).toEqual(
      new Set(['ELOOP', 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', ...results[0].filter((r) => r.startsWith('inode '))]),
    )
  })
})
