import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { isLockedFile, tryLockFile } from '../../src/kernel/linux/locks.ts'

let path: string
beforeEach(() => {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-locks-`)
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  path = `${top}/lock`
})

it('a lock is free after its release, even if its file cannot be removed', () => {
  const lock = tryLockFile(path)
  fs.renameSync(path, `${path}.moved`)
  fs.mkdirSync(path)
  expect(isLockedFile(`${path}.moved`)).toBe(true)
  expect(() => lock?.release(true)).toThrow()
  expect(isLockedFile(`${path}.moved`)).toBe(false)
})

it('a failed attempt to lock leaves no descriptor open', () => {
  const held = tryLockFile(path)
  const before = fs.readdirSync('/proc/self/fd').length
  expect(tryLockFile(path)).toBe(undefined)
  expect(fs.readdirSync('/proc/self/fd')).toHaveLength(before)
  held?.release(true)
  expect(fs.existsSync(path)).toBe(false)
})
