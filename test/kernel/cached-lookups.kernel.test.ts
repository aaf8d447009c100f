import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { DirectoryWatches } from '../../src/kernel/linux/watches.ts'
import { cannotInject } from '../helpers/inject.ts'
import { letTicksPass } from '../helpers/tree.ts'

const { inodes } = linuxHost
const { cachedOpens } = inodes

let top: string
beforeEach(async () => {
  top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-cached-')))
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  fs.mkdirSync(`${top}/a/b`, { recursive: true })
  fs.symlinkSync('a', `${top}/link`)
  // If a link's access time is not later than its change, a lookup updates it. The kernel's cache alone cannot do that.
  await letTicksPass()
})

function codeOf(open: () => unknown): string {
  try {
    inodes.close(open() as Parameters<typeof inodes.close>[0])
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

it('isPathCached returns true after the kernel has looked up the path, also through links', () => {
  fs.statSync(`${top}/link/b`)
  expect(inodes.isCached(`${top}/link/b`)).toBe(true)
  expect(inodes.isCached(`${top}/a/never looked up`)).toBe(false)
})

it('a cached open finds the same inode as an open, and throws EAGAIN for any other name', () => {
  const root = inodes.openLinkFree(top)
  onTestFinished(() => inodes.close(root))
  fs.statSync(`${top}/link/b`)
  const named = (name: string) => [
    codeOf(() => cachedOpens.openLinkFree?.(`${top}/${name}`)),
    codeOf(() => cachedOpens.openBeneath?.(root, name)),
    codeOf(() => cachedOpens.openEntry?.(root, Buffer.from(name))),
  ]
  expect(named('a')).toEqual(['', '', ''])
  expect(named('link')).toEqual(['ELOOP', '', ''])
  expect(named('never looked up')).toEqual(['EAGAIN', 'EAGAIN', 'EAGAIN'])
})

it('a directory watch that must not wait watches cached directories by path, and skips uncached ones', async () => {
  const failures: string[] = []
  let changed = () => {}
  const watches = new DirectoryWatches(
    () => changed(),
    (error) => failures.push(error.message),
    false,
  )
  onTestFinished(() => watches.close())
  fs.statSync(`${top}/link/b`)
  const directories = [`${top}/link/b`, `${top}/a/never looked up`]
  expect(watches.follow(directories)).toBe(true)
  expect(watches.follow(directories)).toBe(false)
  const change = new Promise<void>((done) => {
    changed = done
  })
  fs.writeFileSync(`${top}/a/b/file`, '')
  await change
  fs.renameSync(`${top}/a/b`, `${top}/a/former`)
  fs.mkdirSync(`${top}/a/b`)
  expect(watches.follow(directories)).toBe(true)
  expect(failures).toEqual([])
})

it.skipIf(cannotInject !== '').each(['ENOSYS', 'EINVAL'])(
  `isPathCached returns false on a kernel that rejects RESOLVE_CACHED with %s${cannotInject && ` (skipped: ${cannotInject})`}`,
  (code) => {
    const program = `const { isPathCached } = await import('${import.meta.dirname}/../../src/kernel/linux/open.ts'); console.log(isPathCached('/'))`
    const inject = ['-f', '-qq', '-e', 'trace=openat2', '-e', `inject=openat2:error=${code}`, '-o', `${top}/trace`]
    const node = [process.execPath, '--input-type=module', '-e', program]
    expect(execFileSync('strace', [...inject, ...node], { encoding: 'utf8' })).toBe('false\n')
  },
)
