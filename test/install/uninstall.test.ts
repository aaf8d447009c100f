import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, it, onTestFinished } from 'vitest'
import { linuxAdministration } from '../../src/kernel/linux/administration.ts'
import {
  bindMount,
  dotFiles,
  install,
  listing,
  makeWorld,
  missing,
  needing,
  otherwise,
  pluginDir,
  podVolume,
  put,
  runHere,
  uninstall,
  type World,
  writeDriver,
} from './world.ts'

needing(missing.root).describe('an uninstall of a driver', () => {
  it('an uninstall removes the driver and the link, and keeps state, logs and configuration', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    put(world, 'var/lib/modekeep/journal', 'x')
    const { exitCode, stdout, stderr } = await uninstall(world)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(listing(world.plugins).map(({ name }) => name)).toEqual([''])
    expect(existsSync(world.link)).toBe(false)
    expect(readFileSync(join(world.root, 'var/lib/modekeep/journal'), 'utf8')).toBe('x')
    expect(stdout.match(/^kept /gm)).toHaveLength(3)
    expect(stdout).toContain('--uninstall --purge')
    expect((await uninstall(world)).stdout).toMatch(/^unchanged .*no driver in/m)
  })

  it('a dry run of an uninstall changes nothing', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const before = listing(world.root)
    expect((await uninstall(world, {}, '--purge', '--dry-run')).exitCode).toBe(0)
    expect(listing(world.root)).toEqual(before)
  })

  needing(missing.mounts).it('an uninstall is refused while a volume is mounted, unless --force is given', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    await bindMount(podVolume(world))
    const refused = await uninstall(world)
    expect(refused.exitCode).toBe(1)
    expect(refused.stderr).toContain(podVolume(world))
    expect(refused.stderr).toContain('the kubelet cannot unmount them')
    expect(existsSync(world.driver)).toBe(true)
    expect((await uninstall(world, {}, '--force')).exitCode).toBe(0)
    expect(existsSync(world.driver)).toBe(false)
  })
})

needing(missing.root).describe('an uninstall', () => {
  /** A volume is mounted after the driver was set aside; the restore behaves as given. */
  function mountedMeanwhile(world: World, back: (from: string, to: string) => void) {
    const volume = podVolume(world)
    mkdirSync(volume, { recursive: true })
    onTestFinished(async () => {
      await execa('umount', [volume])
    })
    const { rename } = linuxAdministration.files
    const admin = otherwise({
      rename(from, to) {
        if (from.endsWith('/gone')) return back(from, to)
        rename(from, to)
        if (to.endsWith('/gone')) execFileSync('mount', ['--bind', volume, volume])
      },
    })
    const run = () => runHere(['uninstall', '--root', world.root, '--plugin-dir', pluginDir], admin)
    return { volume, run }
  }

  needing(missing.mounts).it('an uninstall restores the driver if a volume was mounted meanwhile', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const before = listing(world.driverDir).map(({ name, ino }) => [name, ino])
    const { volume, run } = mountedMeanwhile(world, linuxAdministration.files.rename)
    const { exitCode, stderr } = await run()
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(volume)])
    expect(listing(world.driverDir).map(({ name, ino }) => [name, ino])).toEqual(before)
    expect(dotFiles(world)).toEqual([])
  })

  needing(missing.mounts).it('an uninstall keeps a driver that cannot be restored, and prints the path', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const { run } = mountedMeanwhile(world, () => {
      throw Object.assign(new Error('EIO'), { code: 'EIO' })
    })
    const { exitCode, stderr } = await run()
    const [stage = ''] = dotFiles(world)
    const aside = join(world.plugins, stage, 'gone')
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`rename ${aside} to ${world.driverDir}`)])
    expect(stderr).toContain('volumes of modekeep/fs are mounted')
    expect(existsSync(join(aside, 'fs'))).toBe(true)
  })

  it("an uninstall removes nothing through a symbolic link at the name of a killed uninstall's directory", async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const elsewhere = join(world.base, 'elsewhere')
    mkdirSync(elsewhere)
    for (const name of ['fs', '.fs.abcdef']) writeFileSync(join(elsewhere, name), 'precious')
    mkdirSync(join(world.plugins, '.modekeep~fs.abcdef'))
    symlinkSync(elsewhere, join(world.plugins, '.modekeep~fs.abcdef/gone'))
    const { exitCode, stderr } = await uninstall(world)
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('left in place')])
    expect(listing(elsewhere).map(({ name }) => name)).toEqual(['', '.fs.abcdef', 'fs'])
  })

  it('an uninstall is refused if the mount table is unreadable', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const { exitCode, stderr } = await uninstall(world, {}, '--proc', join(world.base, 'nothing'))
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('cannot read') })
    expect(existsSync(world.driver)).toBe(true)
  })

  it('an uninstall names a volume once even if a container also shows the mount below its own directory', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const volume = podVolume(world)
    const rows = (point: string) => `36 35 98:0 /a ${point} rw - ext4 /dev/vdb rw\n`
    for (const [process, points] of [
      ['self', [volume, `${world.root}/host${volume}`]],
      ['1', [volume]],
    ] as const) {
      mkdirSync(join(world.proc, process), { recursive: true })
      writeFileSync(join(world.proc, process, 'mountinfo'), points.map(rows).join(''))
    }
    const { exitCode, stderr } = await uninstall(world, {}, '--proc', world.proc)
    expect([exitCode, stderr.split(volume).length - 1]).toEqual([1, 1])
  })

  it.each(['self', '1'])(
    'an uninstall is refused if a line in the mounts of process %s cannot be parsed, unless --force is given',
    async (pid) => {
      const world = makeWorld()
      await install(world, writeDriver(world, 'a'))
      for (const process of ['self', '1']) {
        mkdirSync(join(world.proc, process), { recursive: true })
        writeFileSync(join(world.proc, process, 'mountinfo'), process === pid ? 'a line of another kernel\n' : '')
      }
      const refused = await uninstall(world, {}, '--proc', world.proc)
      expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('error: cannot read') })
      expect(refused.stderr).toContain('or use --force')
      expect(existsSync(world.driver)).toBe(true)
      const forced = await uninstall(world, {}, '--proc', world.proc, '--force')
      expect(forced).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('because of --force') })
      expect(existsSync(world.driver)).toBe(false)
    },
  )

  it("an uninstall keeps a link to another target, and files that are not modekeep's", async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    rmSync(world.link)
    symlinkSync('/elsewhere/modekeep~fs/fs', world.link)
    writeFileSync(join(world.driverDir, 'notes'), 'mine')
    const { exitCode, stderr } = await uninstall(world)
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(/holds files that are not modekeep's: left in place/)
    expect(existsSync(world.driverDir)).toBe(false)
    const [aside = ''] = dotFiles(world)
    expect(readFileSync(join(world.plugins, aside, 'gone/notes'), 'utf8')).toBe('mine')
    expect(existsSync(join(world.plugins, aside, 'gone/fs'))).toBe(false)
  })
})
