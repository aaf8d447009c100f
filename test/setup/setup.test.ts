import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

const SETUP = resolve(import.meta.dirname, '../../scripts/setup.sh')
const SOURCES = [
  'src/a.ts',
  'driver/a.ts',
  'scripts/build/a.ts',
  'scripts/build.ts',
  'package.json',
  'package-lock.json',
]
const [BEFORE, BUILT, INSTALLED, AFTER] = [1000, 2000, 4000, 3000]

/** A set-up checkout with an executable, and a Node that prints its arguments. */
function checkout() {
  const root = fs.mkdtempSync(join(tmpdir(), 'modekeep-setup-'))
  onTestFinished(() => fs.rmSync(root, { recursive: true }))
  const put = (path: string, time: number, text = '') => {
    fs.mkdirSync(dirname(join(root, path)), { recursive: true })
    fs.writeFileSync(join(root, path), text, { mode: 0o755 })
    fs.utimesSync(join(root, path), time, time)
  }
  for (const path of [...SOURCES, 'README.md']) put(path, BEFORE)
  put('scripts/setup.sh', BEFORE, fs.readFileSync(SETUP, 'utf8'))
  put('node_modules/.bin/node', BEFORE, '#!/bin/sh\necho "$@" >&2\n')
  put('node_modules/.package-lock.json', INSTALLED)
  put('dist/modekeep', BUILT)
  return {
    touch: (path: string) => fs.utimesSync(join(root, path), AFTER, AFTER),
    builds() {
      fs.writeFileSync(join(root, 'said'), '')
      execFileSync('sh', ['-c', 'sh scripts/setup.sh 2>said'], { cwd: root })
      return fs.readFileSync(join(root, 'said'), 'utf8').includes('scripts/build.ts')
    },
  }
}

it.each(SOURCES)('the executable is built again if %s has changed', (path) => {
  const { builds, touch } = checkout()
  expect(builds()).toBe(false)
  touch(path)
  expect(builds()).toBe(true)
})

it('the executable is not built again for files that it does not contain', () => {
  const { builds, touch } = checkout()
  touch('README.md')
  expect(builds()).toBe(false)
})
