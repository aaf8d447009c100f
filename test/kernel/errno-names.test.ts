import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { findErrnoName, formatErrorWithErrnoName, nameErrno } from '../../src/kernel/errno-names.ts'

const HEADERS = ['errno-base', 'errno'].map((name) => `/usr/include/asm-generic/${name}.h`)
const hasHeaders = HEADERS.every((path) => fs.existsSync(path))
const reason = hasHeaders
  ? ''
  : ' (skipped: the headers of Linux are missing; run "sudo apt-get install linux-libc-dev")'

it.skipIf(!hasHeaders)(`each error of Linux has its name of the kernel's headers${reason}`, () => {
  const defined = HEADERS.flatMap((path) => [
    ...fs.readFileSync(path, 'utf8').matchAll(/^#define\s+(E[A-Z0-9]+)\s+(\d+)/gm),
  ])
  expect(defined.length).toBeGreaterThan(130)
  // Both names are of one number, and libuv uses the other one.
  const named = defined.filter(([, name]) => name !== 'EOPNOTSUPP')
  for (const [, name, errno] of named) expect([errno, nameErrno(Number(errno))]).toEqual([errno, name])
})

it('an error of Node has its name and message, also where libuv does not know its errno', () => {
  const of = (code: string, errno: number, message: string) =>
    Object.assign(new Error(message), { code, errno, syscall: 'stat', path: '/a' })
  const nameless = 'Unknown system error -116'
  const stale = of(nameless, -116, `${nameless}: ${nameless}, stat '/a'`)
  expect([findErrnoName(stale), formatErrorWithErrnoName(stale)]).toEqual(['ESTALE', "ESTALE, stat '/a'"])
  const quota = of('UNKNOWN', -122, "UNKNOWN: unknown error, stat '/a'")
  expect([findErrnoName(quota), formatErrorWithErrnoName(quota)]).toEqual(['EDQUOT', "EDQUOT, stat '/a'"])
  const missing = of('ENOENT', -2, "ENOENT: no such file or directory, stat '/a'")
  expect([findErrnoName(missing), formatErrorWithErrnoName(missing)]).toEqual(['ENOENT', missing.message])
  expect(findErrnoName(new Error('no code'))).toBeUndefined()
})
