import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  watch,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, it } from 'vitest'
import {
  checkout,
  dotFiles,
  install,
  listing,
  makeWorld,
  missing,
  needing,
  permissions,
  pluginDir,
  put,
  run,
  sameBytes,
  writeDriver,
} from './world.ts'

needing(missing.root).describe('a first install, as kubelet sees it,', () => {
  it('a first install creates the driver, its link, its directories and the example configuration', async () => {
    const world = makeWorld()
    const binary = writeDriver(world, 'a')
    const { exitCode, stdout, stderr } = await install(world, binary)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^installed {3}.*modekeep~fs\/fs$/m)
    expect(sameBytes(world.driver, binary)).toBe(true)
    expect(readlinkSync(world.link)).toBe(`${pluginDir}/modekeep~fs/fs`)
    const modes = {
      [world.driver]: 0o755,
      [world.driverDir]: 0o755,
      [join(world.root, 'var/lib/modekeep')]: 0o700,
      [join(world.root, 'var/lib/modekeep/volumes')]: 0o755,
      [join(world.root, 'var/log/modekeep')]: 0o750,
      [join(world.root, 'etc/modekeep')]: 0o755,
      [join(world.root, 'etc/modekeep/config.example.json')]: 0o644,
    }
    for (const [path, mode] of Object.entries(modes)) expect([path, permissions(path)]).toEqual([path, mode])
    expect(lstatSync(world.driver)).toMatchObject({ uid: 0, gid: 0 })
    expect(dotFiles(world)).toEqual([])
  })

  it('a first install sets the mode of a state directory that is a symbolic link', async () => {
    const world = makeWorld()
    const state = join(world.root, 'srv/state')
    mkdirSync(state, { recursive: true, mode: 0o755 })
    mkdirSync(join(world.root, 'var/lib'), { recursive: true })
    symlinkSync('../../srv/state', join(world.root, 'var/lib/modekeep'))
    const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
    expect({ exitCode, stderr, mode: permissions(state) }).toEqual({ exitCode: 0, stderr: '', mode: 0o700 })
  })

  it('a first install shows the kubelet one new name, once, and never an incomplete driver', async () => {
    const world = makeWorld()
    const binary = writeDriver(world, 'a')
    mkdirSync(world.plugins, { recursive: true })
    const events: string[] = []
    const watcher = watch(world.plugins, (event, name) => {
      if (!name?.startsWith('.')) events.push(`${event} ${name}`)
    })
    let looks = 0
    const installing = install(world, binary).then((result) => ({ done: true, result }))
    for (let done = false; !done; looks += 1) {
      if (existsSync(world.driverDir)) expect(sameBytes(world.driver, binary)).toBe(true)
      done = await Promise.race([installing.then(() => true), sleep(1, false)])
    }
    expect((await installing).result.exitCode).toBe(0)
    await sleep(50)
    watcher.close()
    expect(looks).toBeGreaterThan(3)
    expect(events).toEqual(['rename modekeep~fs'])
  })

  it('a second install changes nothing, not even time stamps and inode numbers', async () => {
    const world = makeWorld()
    const binary = writeDriver(world, 'a')
    await install(world, binary)
    const before = listing(world.root)
    const again = await install(world, binary)
    expect(again.exitCode).toBe(0)
    expect(again.stdout).toMatch(/^unchanged .*has these bytes already$/m)
    expect(listing(world.root)).toEqual(before)
  })

  it('a dry run of an install prints the steps and changes nothing', async () => {
    const world = makeWorld()
    const before = listing(world.root)
    const { exitCode, stdout, stderr } = await install(world, writeDriver(world, 'a'), {}, '--dry-run')
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^would {7}rename .*\.modekeep~fs\.XXXXXX to .*\/modekeep~fs$/m)
    expect(stdout).toMatch(/^would {7}link /m)
    expect(listing(world.root)).toEqual(before)
  })
})

needing(missing.root).describe('a first install', () => {
  needing(missing.strace).it('a first install is one rename of a complete and synced directory', async () => {
    const world = makeWorld()
    const trace = join(world.base, 'trace')
    const calls = 'rename,renameat,renameat2,mkdir,mkdirat,fsync,link,linkat'
    const prefix = ['strace', '-f', '-y', '-e', `trace=${calls}`, '-o', trace]
    expect((await install(world, writeDriver(world, 'a'), { prefix })).exitCode).toBe(0)
    const lines = readFileSync(trace, 'utf8').split('\n')
    const naming = lines.filter((line) => /\/modekeep~fs"/.test(line))
    expect(naming).toHaveLength(1)
    expect(naming[0]).toMatch(/rename.*\/\.modekeep~fs\.\w{6}", .*\/modekeep~fs"/)
    // Of the driver and its directory before, of the plugin directory after.
    const syncs = (part: string[]) =>
      part.filter((line) => /fsync\(\d+<.*\/volumeplugins(\/\.modekeep~fs[^>]*)?>\) += 0/.test(line)).length
    const at = lines.indexOf(naming[0] ?? '')
    expect([syncs(lines.slice(0, at)), syncs(lines.slice(at))]).toEqual([2, 1])
  })

  it('a first install fills an empty driver directory, which makes the kubelet skip other drivers', async () => {
    const world = makeWorld()
    mkdirSync(world.driverDir, { recursive: true })
    expect(await install(world, writeDriver(world, 'a'))).toMatchObject({ exitCode: 0, stderr: '' })
    expect(sameBytes(world.driver, writeDriver(world, 'a'))).toBe(true)
  })

  it('a first install refuses a driver directory that is a symbolic link, which the kubelet skips', async () => {
    const world = makeWorld()
    mkdirSync(world.plugins, { recursive: true })
    symlinkSync(world.base, world.driverDir)
    const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('symbolic link') })
    expect(existsSync(join(world.base, 'fs'))).toBe(false)
  })

  it('a first install keeps a foreign file at /usr/local/sbin/modekeep and still installs the driver', async () => {
    const world = makeWorld()
    put(world, 'usr/local/sbin/modekeep', 'mine')
    const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(/^warning: .*usr\/local\/sbin\/modekeep is not modekeep's: left alone/)
    expect(readFileSync(world.link, 'utf8')).toBe('mine')
    expect(existsSync(world.driver)).toBe(true)
  })

  it('a first install never overwrites config.json and uses the state directory in that file', async () => {
    const world = makeWorld()
    const text = '{ "logLevel": "debug",\n  "stateDir" : "/srv/modekeep-state", "allow": [] }'
    put(world, 'etc/modekeep/config.json', text)
    expect((await install(world, writeDriver(world, 'a'))).exitCode).toBe(0)
    expect(readFileSync(join(world.root, 'etc/modekeep/config.json'), 'utf8')).toBe(text)
    expect(permissions(join(world.root, 'srv/modekeep-state'))).toBe(0o700)
    expect(existsSync(join(world.root, 'var/lib/modekeep'))).toBe(false)
  })

  it('a first install writes the example configuration from driver/', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const example = join(world.root, 'etc/modekeep/config.example.json')
    expect(readFileSync(example, 'utf8')).toBe(readFileSync(join(checkout, 'driver/config.example.json'), 'utf8'))
  })

  it.each([
    ['the configuration', 'etc/modekeep', 0o777],
    ['the configuration', 'etc', 0o775],
    ['the driver', join(pluginDir, '..'), 0o777],
    ['the driver', pluginDir, 0o1777],
    ['the state', 'var/lib/modekeep', 0o770],
    ['the log', 'var/log/modekeep', 0o770],
    ['the log', 'var/log', 0o777],
  ])(
    'a first install is refused without an effect if users other than root can replace %s by %s',
    async (what, path, mode) => {
      const world = makeWorld()
      const directory = join(world.root, path)
      mkdirSync(directory, { recursive: true })
      chownSync(directory, 0, 1000)
      chmodSync(directory, mode)
      const before = listing(world.root)
      const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
      const owner = `uid 0, gid 1000, mode ${mode.toString(8).padStart(4, '0')}`
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringContaining(
          `${directory} can be written by others than root (${owner}): they could replace ${what}`,
        ),
      ])
      expect(stderr).toContain(`chown root ${directory}; chmod go-w ${directory}`)
      expect(listing(world.root)).toEqual(before)
      const dry = await install(world, writeDriver(world, 'a'), {}, '--dry-run')
      expect([dry.exitCode, dry.stderr]).toEqual([0, expect.stringMatching(/^warning: .* can be written by others/)])
    },
  )

  it('a first install is refused if a symbolic link above the driver belongs to another user', async () => {
    const world = makeWorld()
    mkdirSync(join(world.root, 'srv/plugins'), { recursive: true })
    symlinkSync('srv', join(world.root, 'link'))
    lchownSync(join(world.root, 'link'), 1000, 1000)
    const args = ['--root', world.root, '--plugin-dir', '/link/plugins', '--binary', writeDriver(world, 'a')]
    const { exitCode, stderr } = await run(args)
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`${join(world.root, 'link')} can be written`)])
  })

  it('a first install warns if a system group can write above the log, as on Debian with rsyslog', async () => {
    const world = makeWorld()
    const directory = join(world.root, 'var/log')
    mkdirSync(directory, { recursive: true })
    chownSync(directory, 0, 110)
    chmodSync(directory, 0o775)
    const { exitCode, stderr } = await install(world, writeDriver(world, 'a'))
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/^warning: .*var\/log can be written by others/)])
  })

  it('a first install with --sha256 installs exactly the file with that sum, and refuses other files', async () => {
    const world = makeWorld()
    const binary = writeDriver(world, 'a')
    const sum = createHash('sha256').update(readFileSync(binary)).digest('hex')
    const wrong = await install(
      world,
      binary,
      {},
      '--sha256',
      sum.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    )
    expect(wrong).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not the file that --sha256 asks for'),
    })
    expect(existsSync(world.driver)).toBe(false)
    expect((await install(world, binary, {}, `--sha256=${sum.toUpperCase()}`)).exitCode).toBe(0)
  })

  needing(missing.dist).it('a first install installs the real executable, whose init replies', async () => {
    const world = makeWorld()
    const result = await run(['--root', world.root, '--plugin-dir', pluginDir])
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(JSON.parse((await execa(world.driver, ['init'])).stdout)).toMatchObject({ status: 'Success' })
  })
})
