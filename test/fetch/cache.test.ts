import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, it, onTestFinished } from 'vitest'

const CACHE = resolve(import.meta.dirname, '../../scripts/fetch/cache.ts')

let home: string
beforeEach(() => {
  home = fs.mkdtempSync(join(tmpdir(), 'modekeep-cache-'))
  onTestFinished(() => fs.rmSync(home, { recursive: true, force: true }))
})

/** Another process that wants `name`; each making is a line in the file `made`. */
async function want(name: string, make: string): Promise<string> {
  const script = `
    import * as fs from 'node:fs'
    import { provideCached } from ${JSON.stringify(CACHE)}
    console.log(provideCached(${JSON.stringify(name)}, (path) => {
      fs.appendFileSync(${JSON.stringify(`${home}/made`)}, 'x')
      ${make}
    }))`
  const args = ['--input-type=module-typescript', '-e', script]
  const env = { ...process.env, XDG_CACHE_HOME: home }
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  return stdout.trim()
}

const PAUSE = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)'
const SLOWLY = `fs.writeFileSync(path, 'half'); ${PAUSE}; fs.appendFileSync(path, ' whole')`

it('a file that several processes request is created once, and no process sees a partial file', async () => {
  const paths = await Promise.all([1, 2, 3].map(() => want('directory/name', SLOWLY)))
  expect(new Set(paths)).toEqual(new Set([join(home, 'modekeep/directory/name')]))
  expect(fs.readFileSync(paths[0] ?? '', 'utf8')).toBe('half whole')
  expect(fs.readFileSync(join(home, 'made'), 'utf8')).toBe('x')
  expect(fs.readdirSync(join(home, 'modekeep'))).toEqual(['directory'])
})

it('a download process that was killed or failed leaves no lock or file that blocks the next process', async () => {
  await expect(want('name', "fs.writeFileSync(path, 'half'); process.kill(process.pid, 'SIGKILL')")).rejects.toThrow()
  await expect(want('name', "throw new Error('no network')")).rejects.toThrow('no network')
  const path = await want('name', SLOWLY)
  expect(fs.readFileSync(path, 'utf8')).toBe('half whole')
  expect(fs.readdirSync(join(home, 'modekeep'))).toEqual(['name'])
})
