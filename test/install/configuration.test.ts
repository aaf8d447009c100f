import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  BINARY,
  dotFiles,
  install,
  listing,
  makeWorld,
  missing,
  needing,
  permissions,
  run,
  uninstall,
  type World,
} from './world.ts'

const GOOD = '{ "allow": [{ "sources": ["/srv/volumes/*"] }] }\n'

function wish(world: World, text: string): string {
  const file = join(world.base, 'wish.json')
  writeFileSync(file, text)
  return file
}

const installed = (world: World) => join(world.root, 'etc/modekeep/config.json')

needing(missing.root, missing.dist).describe('a configuration given to the installer', () => {
  it('a given configuration is installed with the driver, and a second install does not change the file', async () => {
    const world = makeWorld()
    const args = ['--config', wish(world, GOOD)]
    const first = await install(world, BINARY, {}, ...args)
    expect(first).toMatchObject({ exitCode: 0, stderr: '' })
    expect(first.stdout).toContain(`configured  ${installed(world)}`)
    expect(readFileSync(installed(world), 'utf8')).toBe(GOOD)
    expect(permissions(installed(world))).toBe(0o644)
    const before = listing(world.root)
    const second = await install(world, BINARY, {}, ...args)
    expect(second.stdout).toContain(`unchanged   ${installed(world)}`)
    expect(dotFiles(world)).toEqual([])
    const files = (all: ReturnType<typeof listing>) => all.map(({ name, ino, size }) => [name, ino, size])
    expect(files(listing(world.root))).toEqual(files(before))
  })

  it('a given configuration with faults is refused, and the earlier configuration stays in use', async () => {
    const world = makeWorld()
    await install(world, BINARY, {}, '--config', wish(world, GOOD))
    const bad = wish(world, '{ "allowedSource": ["/srv"], "logLevel": "loud" }')
    const { exitCode, stderr } = await install(world, BINARY, {}, '--config', bad)
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`${bad} is refused`)
    for (const named of ['"allowedSource"', '"logLevel" is "loud"']) expect(stderr).toContain(named)
    expect(readFileSync(installed(world), 'utf8')).toBe(GOOD)
    expect(dotFiles(world)).toEqual([])
  })

  it('a configuration that is no JSON is refused on a new node, which gets the driver without a configuration', async () => {
    const world = makeWorld()
    const result = await install(world, BINARY, {}, '--config', wish(world, 'allow: [{ sources: [/srv/*] }]'))
    expect(result.exitCode).toBe(1)
    expect(result.stderr).toContain('is not JSON')
    expect([existsSync(world.driver), existsSync(installed(world))]).toEqual([true, false])
  })

  it('a configuration is not installed if the driver crashes while reading it', async () => {
    const world = makeWorld()
    const driver = join(world.base, 'dies')
    const answer = `case $MODEKEEP_CONFIG in *.config.json.new) kill -KILL $$ ;; esac; echo '{"status":"Success"}'`
    writeFileSync(driver, `#!/bin/sh\n${answer}\n`)
    const { exitCode, stderr } = await install(world, driver, {}, '--config', wish(world, GOOD))
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('was not tried')])
    expect(stderr).toContain('init gave exit status')
    expect([existsSync(world.driver), existsSync(installed(world))]).toEqual([true, false])
    expect(dotFiles(world)).toEqual([])
  })

  it('an install with an unreadable configuration changes nothing', async () => {
    const world = makeWorld()
    const { exitCode, stderr } = await install(world, BINARY, {}, '--config', join(world.base, 'none'))
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('none is not a readable file')])
    expect(listing(world.root)).toHaveLength(1)
  })
})

describe('--config', () => {
  it('--config is refused together with --uninstall', async () => {
    expect(await run(['--uninstall', '--config', '/x'])).toMatchObject({ exitCode: 2 })
  })

  needing(missing.root, missing.dist).it('a configuration installed by --config is removed by --purge', async () => {
    const world = makeWorld()
    await install(world, BINARY, {}, '--config', wish(world, GOOD))
    await uninstall(world, {}, '--purge')
    expect(existsSync(join(world.root, 'etc/modekeep'))).toBe(false)
  })
})
