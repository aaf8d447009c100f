import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { install, listing, makeWorld, missing, needing, permissions, put, writeDriver } from './world.ts'

needing(missing.root).describe('an install with --root', () => {
  it.each([
    ['the plugin directory', 'var/lib/kubelet'],
    ['the configuration', 'etc'],
    ['the state', 'var/lib/modekeep'],
    ['the log', 'var/log'],
    ['the link', 'usr/local/sbin'],
  ])(
    'an install with --root writes nothing through a symbolic link of %s that leads out of the root',
    async (_what, path) => {
      const world = makeWorld()
      const outside = join(world.base, 'outside')
      mkdirSync(outside)
      mkdirSync(join(world.root, path, '..'), { recursive: true })
      symlinkSync(outside, join(world.root, path))
      const before = [listing(outside), listing(world.root)]
      const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`leads out of ${world.root}`)])
      expect([listing(outside), listing(world.root)]).toEqual(before)
    },
  )

  it('an install with --root changes nothing outside of the root for a stateDir with ".."', async () => {
    const world = makeWorld()
    put(world, 'etc/modekeep/config.json', '{ "stateDir": "/../outside" }')
    const outside = join(world.base, 'outside')
    mkdirSync(outside)
    const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('leads out of')])
    expect(permissions(outside)).toBe(0o755)
  })
})
