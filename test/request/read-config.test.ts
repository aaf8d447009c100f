import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import { readConfigFile } from '../../src/request/read-config.ts'

let top: string
let file: string
beforeEach(() => {
  top = fs.realpathSync(fs.mkdtempSync(`${tmpdir()}/modekeep-config-`))
  file = `${top}/config.json`
})
afterEach(() => fs.rmSync(top, { recursive: true }))

it('no file is no fault, unless it was named', async () => {
  expect((await readConfigFile(file, false)).faults).toEqual([])
  const named = await readConfigFile(file, true)
  expect(named.faults).toEqual([`node configuration ${file} cannot be read (ENOENT)`])
  expect(named.config.allow).toEqual(DEFAULT_CONFIG.allow)
  expect(named.isUnreadable).toBe(true)
})

it('a file that cannot be read is a fault in any case', async () => {
  fs.mkdirSync(file)
  expect((await readConfigFile(file, false)).faults).toEqual([
    `node configuration ${file} is no regular file: write one there`,
  ])
})

it('the state directory is a real path, also where it is still to be made', async () => {
  fs.mkdirSync(`${top}/real`)
  fs.symlinkSync(`${top}/real`, `${top}/link`)
  fs.writeFileSync(file, JSON.stringify({ stateDir: `${top}/link/deeper/state` }))
  expect(await readConfigFile(file, true)).toMatchObject({
    config: { stateDir: `${top}/real/deeper/state` },
    faults: [],
  })
})

it('every fault of the file is told', async () => {
  fs.writeFileSync(file, JSON.stringify({ stateDir: 'relative', logLevel: 'loud' }))
  const { faults, isUnreadable } = await readConfigFile(file, true)
  expect(faults).toHaveLength(2)
  expect(isUnreadable).toBe(undefined)
})
