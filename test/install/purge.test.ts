import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  bindMount,
  install,
  listing,
  makeWorld,
  missing,
  needing,
  podVolume,
  put,
  uninstall,
  writeDriver,
} from './world.ts'

needing(missing.root).describe('a purge', () => {
  it('a purge removes state, logs and configuration, but no volume data', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    put(world, 'var/lib/modekeep/mounts/record', 'x')
    put(world, 'var/lib/modekeep/volumes/data/file', 'precious')
    put(world, 'var/log/modekeep/modekeep.log', 'x')
    put(world, 'etc/modekeep/config.json', '{}')
    const { exitCode, stdout } = await uninstall(world, {}, '--purge')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^kept .*var\/lib\/modekeep\/volumes: it holds data/m)
    expect(existsSync(join(world.root, 'var/lib/modekeep/mounts'))).toBe(false)
    expect(existsSync(join(world.root, 'var/log/modekeep'))).toBe(false)
    expect(existsSync(join(world.root, 'etc/modekeep'))).toBe(false)
    expect(readFileSync(join(world.root, 'var/lib/modekeep/volumes/data/file'), 'utf8')).toBe('precious')
  })

  it('a purge leaves nothing of modekeep if there is no volume data', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    expect((await uninstall(world, {}, '--purge')).exitCode).toBe(0)
    expect(listing(world.root).filter(({ name }) => name.includes('modekeep'))).toEqual([])
  })

  it.each(['/srv/data', '/var/lib/modekeep/..', '/'])(
    "a purge keeps a state directory that is not clearly modekeep's own: %s",
    async (dir) => {
      const world = makeWorld()
      put(world, 'etc/modekeep/config.json', JSON.stringify({ stateDir: dir }))
      put(world, 'srv/data/file', 'precious')
      await install(world, writeDriver(world, 'a'))
      await uninstall(world, {}, '--purge')
      expect(readFileSync(join(world.root, 'srv/data/file'), 'utf8')).toBe('precious')
      expect(existsSync(join(world.root, 'var/lib/kubelet'))).toBe(true)
    },
  )

  it('a purge keeps volume data inside the state directory if a rule names that path', async () => {
    const world = makeWorld()
    const configuration = { stateDir: '/srv/modekeep', allow: [{ sources: ['/srv/modekeep/data/a/*'] }] }
    put(world, 'etc/modekeep/config.json', JSON.stringify(configuration))
    put(world, 'srv/modekeep/data/a/file', 'precious')
    await install(world, writeDriver(world, 'a'))
    await uninstall(world, {}, '--purge')
    expect(readFileSync(join(world.root, 'srv/modekeep/data/a/file'), 'utf8')).toBe('precious')
  })

  needing(missing.mounts).it('a purge is refused while a volume is mounted, even with --force', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    await bindMount(podVolume(world))
    const before = listing(world.root)
    expect((await uninstall(world, {}, '--purge', '--force')).exitCode).toBe(1)
    expect(listing(world.root)).toEqual(before)
  })

  needing(missing.mounts).it('a purge does not enter a mount below the state directory', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    put(world, 'var/lib/modekeep/other/file', 'precious')
    await bindMount(join(world.root, 'var/lib/modekeep/other'))
    const { stderr } = await uninstall(world, {}, '--purge')
    expect(stderr).toMatch(/something is mounted below .*: kept/)
    expect(readFileSync(join(world.root, 'var/lib/modekeep/other/file'), 'utf8')).toBe('precious')
  })
})

needing(missing.root, missing.mounts).describe('an uninstall after the plugin of the runtime was killed', () => {
  /** Installs the driver, and mounts what a killed plugin leaves. */
  async function installWithStaging() {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const staging = join(world.root, 'var/lib/modekeep/nri/mounts')
    mkdirSync(staging, { recursive: true, mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0700', 'modekeep', staging])
    onTestFinished(() => void spawnSync('umount', [staging], { stdio: 'ignore' }))
    return { world, staging }
  }

  it('a purge after a kill of the NRI plugin unmounts the empty staging directory of clones and removes the state', async () => {
    const { world, staging } = await installWithStaging()
    const dry = await uninstall(world, {}, '--purge', '--dry-run')
    expect(dry.stdout).toContain(`unmount ${staging}`)
    expect(statSync(staging).dev).not.toBe(statSync(join(staging, '..')).dev)
    const { stdout, stderr } = await uninstall(world, {}, '--purge')
    expect([stdout, stderr]).toEqual([expect.stringMatching(`removed +${staging}\n`), ''])
    expect(existsSync(join(world.root, 'var/lib/modekeep'))).toBe(false)
  })

  it('an uninstall after a kill of the NRI plugin keeps a staging directory that still has a clone', async () => {
    const { world, staging } = await installWithStaging()
    mkdirSync(join(staging, 'c1'))
    const { stdout, stderr } = await uninstall(world, {}, '--purge')
    expect(stdout).toMatch(new RegExp(`kept +${staging}$`, 'm'))
    expect(stderr).toContain('something is mounted below')
    expect(existsSync(join(staging, 'c1'))).toBe(true)
  })
})
