import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { readConfigFile } from '../../src/config/read-config.ts'
import { rendered } from '../helpers/rendered.ts'

let top: string
let file: string
beforeEach(() => {
  top = fs.realpathSync(fs.mkdtempSync(`${tmpdir()}/modekeep-config-`))
  file = `${top}/config.json`
})
afterEach(() => fs.rmSync(top, { recursive: true }))

it('a missing configuration file is a fault only if the caller named the file explicitly', async () => {
  expect((await readConfigFile(file, false)).faults).toEqual([])
  const named = await readConfigFile(file, true)
  expect(rendered(named.faults)).toEqual([`node configuration ${file} cannot be read (ENOENT)`])
  expect(named.config.allow).toEqual(DEFAULT_CONFIG.allow)
  expect(named.isUnreadable).toBe(true)
})

it('an unreadable configuration file is always a fault', async () => {
  fs.mkdirSync(file)
  expect(rendered((await readConfigFile(file, false)).faults)).toEqual([
    `node configuration ${file} is no regular file: write one there`,
  ])
})

it('the state directory in a loaded configuration is a resolved path, even if the directory does not exist yet', async () => {
  fs.mkdirSync(`${top}/real`)
  fs.symlinkSync(`${top}/real`, `${top}/link`)
  fs.writeFileSync(file, JSON.stringify({ stateDir: `${top}/link/deeper/state` }))
  expect(await readConfigFile(file, true)).toMatchObject({
    config: { stateDir: `${top}/real/deeper/state` },
    faults: [],
  })
})

it('every fault of the configuration is reported', async () => {
  fs.writeFileSync(file, JSON.stringify({ stateDir: 'relative', logLevel: 'loud' }))
  const { faults, isUnreadable } = await readConfigFile(file, true)
  expect(faults).toHaveLength(2)
  expect(isUnreadable).toBe(undefined)
})
