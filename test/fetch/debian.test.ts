import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { CACHE_DIRECTORY } from '../../scripts/fetch/cache.ts'
import { provideDebianFile } from '../../scripts/fetch/debian.ts'
import { GCC_LICENCE_FILES } from '../../scripts/fetch/pinned.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'

/** A cache of this file's own, with the archive that the user's cache has already. */
const { users, own } = vi.hoisted(() => {
  const { HOME, XDG_CACHE_HOME = `${HOME}/.cache` } = process.env
  const own = `${process.env.TMPDIR ?? '/tmp'}/modekeep-debian-${process.pid}`
  process.env.XDG_CACHE_HOME = own
  return { users: XDG_CACHE_HOME, own }
})
// Another test of the process may have loaded the module before: CACHE would be the user's, and be written to and removed.
if (dirname(CACHE_DIRECTORY) !== own)
  throw new Error('this file needs a process of its own: run it without --no-isolate')
beforeAll(() => {
  const archive = basename(GCC_LICENCE_FILES.COPYRIGHT.archive.address)
  const known = join(users, 'modekeep', archive)
  fs.mkdirSync(CACHE_DIRECTORY, { recursive: true })
  if (fs.existsSync(known)) fs.copyFileSync(known, join(CACHE_DIRECTORY, archive))
})
afterAll(() => fs.rmSync(own, { recursive: true, force: true }))

const ROOT = resolve(import.meta.dirname, '../..')
const file = skipIfUnavailable(provideDebianFile)
const sum = (path: string) => createHash('sha256').update(fs.readFileSync(path)).digest('hex')

it('a cached Debian file whose SHA-256 differs from the pinned one is downloaded again', () => {
  const { COPYRIGHT } = GCC_LICENCE_FILES
  const path = file(COPYRIGHT)
  expect(sum(path)).toBe(COPYRIGHT.sum)
  fs.writeFileSync(path, 'changed')
  expect(file(COPYRIGHT)).toBe(path)
  expect(sum(path)).toBe(COPYRIGHT.sum)
})

it('a downloaded file whose SHA-256 differs from the pinned one is refused and not cached', () => {
  const wrong = { ...GCC_LICENCE_FILES.COPYRIGHT, path: 'usr/share/doc/gcc-10-base/TODO.Debian' }
  expect(() => file(wrong)).toThrow(`but scripts/fetch/pinned.ts has ${wrong.sum}`)
  expect(fs.existsSync(join(CACHE_DIRECTORY, 'gcc-10-base_10.2.1-6_amd64/TODO.Debian'))).toBe(false)
})

it("a build without apt and cache carries the machine's own libraries, and prints the version of their glibc", () => {
  const work = fs.mkdtempSync(join(tmpdir(), 'modekeep-without-apt-'))
  onTestFinished(() => fs.rmSync(work, { recursive: true, force: true }))
  fs.writeFileSync(join(work, 'main.ts'), "console.log('it runs')\n")
  const build = withoutApt(work, [
    '--input-type=module-typescript',
    '-e',
    `import * as fs from 'node:fs'
     import { buildProgram } from '${ROOT}/scripts/build/program.ts'
     const bytes = await buildProgram(process.arch, '${work}/main.ts')
     fs.writeFileSync('${work}/program', bytes, { mode: 0o755 })`,
  ])
  expect(build).toMatchObject({
    status: 0,
    stderr: expect.stringContaining("this machine's own libraries, with glibc 2."),
  })
  expect(build.stderr).toContain('apt-get is missing')
  expect(spawnSync(join(work, 'program'), { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: 'it runs\n' })
})

it('a build for the other processor without apt and cache fails with the reason', () => {
  const work = fs.mkdtempSync(join(tmpdir(), 'modekeep-without-apt-'))
  onTestFinished(() => fs.rmSync(work, { recursive: true, force: true }))
  const other = process.arch === 'x64' ? 'arm64' : 'x64'
  const args = ['--arch', other, join(ROOT, 'driver/main.ts'), join(work, 'program')]
  const build = withoutApt(work, [join(ROOT, 'scripts/build.ts'), ...args])
  expect(build).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^build: pool\/.* cannot be fetched: apt-get is missing\n$/),
  })
})

/** Runs Node where there is no program and an empty cache. */
function withoutApt(empty: string, args: readonly string[]) {
  const env = { ...process.env, PATH: empty, XDG_CACHE_HOME: empty }
  return spawnSync(process.execPath, [...args], { env, encoding: 'utf8' })
}
