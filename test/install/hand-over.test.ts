// install.sh finds the executable, compares its sum and hands over.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import {
  BINARY,
  dotFiles,
  install,
  makeWorld,
  missing,
  pluginDir,
  run,
  sameBytes,
  script,
  shells,
  skipFor,
  standIn,
  uninstall,
  unpacked,
  type World,
} from './world.ts'

const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
const below = (world: World) => ['--root', world.root, '--plugin-dir', pluginDir]

describe.skipIf(skipFor(missing.root, missing.dist)).each(shells.map((shell) => [shell.join(' '), shell] as const))(
  'install.sh under %s',
  (_name, shell) => {
    const [sh = 'sh', ...applet] = shell
    /** The release's own install.sh. */
    const released = (directory: string, args: string[]) =>
      execa(sh, [...applet, join(directory, 'install.sh'), ...args], { reject: false })

    it('installs, upgrades, tells what is unchanged, and uninstalls', async () => {
      const world = makeWorld()
      const [a, b] = [standIn(world, 'a'), standIn(world, 'b')]
      const said = []
      for (const file of [a, b, b]) said.push(await install(world, file, { shell }))
      expect(said.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([0, 0, 0].map((code) => [code, '']))
      expect(said.map(({ stdout }) => /^(installed|upgraded|unchanged) /m.exec(stdout)?.[1])).toEqual([
        'installed',
        'upgraded',
        'unchanged',
      ])
      expect(sameBytes(world.driver, b)).toBe(true)
      expect(await uninstall(world, { shell })).toMatchObject({ exitCode: 0, stderr: '' })
      expect(existsSync(world.driverDir)).toBe(false)
    })

    it('works alone in a release archive, with the executable beside it', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      const without = await released(directory, below(world))
      expect(without).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--binary FILE') })
      symlinkSync(BINARY, join(directory, 'modekeep'))
      expect((await released(directory, below(world))).stdout).toMatch(/^installed/m)
      expect(sameBytes(world.driver, BINARY)).toBe(true)
    })

    it('works alone with the executable that is named', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      const result = await released(directory, [...below(world), `--binary=${BINARY}`])
      expect([result.exitCode, result.stdout]).toEqual([0, expect.stringMatching(/^installed/m)])
    })

    it.each([
      ['as one word', () => [`--binary=${BINARY}`, '--uninstall']],
      ['as two words', () => ['--uninstall', '--binary', BINARY]],
      ['with its sum', () => ['--sha256', sumOf(BINARY), '--binary', BINARY, '--uninstall']],
      ['with its sum in one word', () => [`--sha256=${sumOf(BINARY)}`, '--uninstall', '--binary', BINARY]],
    ])('uninstalls alone with the executable that is named %s', async (_how, named) => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      await released(directory, [...below(world), `--binary=${BINARY}`])
      const result = await released(directory, [...named(), ...below(world)])
      expect([result.exitCode, result.stderr]).toEqual([0, ''])
      expect(existsSync(world.driver)).toBe(false)
    })

    it('tells of an executable that may not be run', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      writeFileSync(join(directory, 'modekeep'), "#!/bin/sh\necho 'modekeep 1'\n", { mode: 0o644 })
      const { exitCode, stderr } = await released(directory, below(world))
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('mounted noexec')])
    })

    it.each([
      ['by SHA256SUMS', (wrong: string) => [`${wrong}  modekeep\n`]],
      ['by SHA256SUMS without a sum of it', (wrong: string) => [`${wrong}  install.sh\n`]],
      ['by --sha256', (wrong: string) => ['', `--sha256=${wrong}`]],
      ['by --sha256 of what is named', (wrong: string) => ['', '--sha256', wrong, '--binary', './modekeep']],
    ])('runs nothing of an executable that is refused %s', async (_how, given) => {
      const world = makeWorld()
      const directory = unpacked(world)
      const [trap, runner] = [join(world.base, 'trap'), join(directory, 'modekeep')]
      rmSync(runner)
      writeFileSync(runner, `#!/bin/sh\n>${trap}\necho 'modekeep 1'\n`, { mode: 0o755 })
      const [sums = '', ...args] = given('0'.repeat(64))
      if (sums) writeFileSync(join(directory, 'SHA256SUMS'), sums)
      const all = [...applet, 'install.sh', ...below(world), ...args]
      const refused = await execa(sh, all, { reject: false, cwd: directory })
      expect(refused).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(/^error: .*(asks for|has no sum of)/),
      })
      expect(existsSync(trap)).toBe(false)
      rmSync(join(directory, 'SHA256SUMS'), { force: true })
      await execa(sh, [...applet, 'install.sh', '--sha256', sumOf(runner).toUpperCase()], { cwd: directory })
      expect(existsSync(trap)).toBe(true)
    })

    it.each([
      ['is no program', "echo 'modekeep 1'\n", 'is no executable'],
      [
        'cannot start, and says so as kubelet is told',
        '#!/bin/sh\necho \'{"status":"Failure"}\'\n',
        'does not work here',
      ],
      ['ends at once', '#!/bin/sh\nexit 3\n', 'does not work here'],
    ])('refuses an executable beside it that %s', async (_what, text, message) => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      writeFileSync(join(directory, 'modekeep'), text)
      chmodSync(join(directory, 'modekeep'), 0o755)
      const { exitCode, stderr } = await released(directory, below(world))
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining(message)])
      expect(existsSync(world.plugins)).toBe(false)
    })
  },
)

describe.skipIf(skipFor(missing.root, missing.dist))('install.sh', () => {
  it('does not run an executable that is built for another processor', async () => {
    const world = makeWorld()
    const directory = unpacked(world)
    rmSync(join(directory, 'modekeep'))
    const foreign = readFileSync(process.execPath).subarray(0, 4096)
    foreign.writeUInt16LE(0x1234, 18)
    writeFileSync(join(directory, 'modekeep'), foreign, { mode: 0o755 })
    const { exitCode, stderr } = await execa('sh', [join(directory, 'install.sh'), ...below(world)], { reject: false })
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('built for another processor')])
  })

  it.skipIf(skipFor(missing.busybox))('works with nothing but the tools of busybox', async () => {
    const world = makeWorld()
    const tools = join(world.base, 'tools')
    await execa('busybox', ['--install', '-s', tools], { reject: false })
    mkdirSync(tools, { recursive: true })
    const { stdout } = await execa('busybox', ['--list'])
    const busybox = (await execa('sh', ['-c', 'command -v busybox'])).stdout
    for (const applet of stdout.split('\n')) symlinkSync(busybox, join(tools, applet))
    const env = { PATH: tools }
    const shell = [join(tools, 'sh')]
    expect(await install(world, standIn(world, 'a'), { shell, env })).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await install(world, standIn(world, 'b'), { shell, env })).toMatchObject({ exitCode: 0, stderr: '' })
    expect(sameBytes(world.driver, standIn(world, 'b'))).toBe(true)
    expect(dotFiles(world)).toEqual([])
  })

  it('is short, as the executable does the work', () => {
    expect(readFileSync(script, 'utf8').split('\n').length - 1).toBeLessThan(100)
  })

  it('says it once where something is wrong', async () => {
    const world = makeWorld()
    const { exitCode, stderr } = await run([...below(world), '--binary', join(world.base, 'none')], { shell: ['sh'] })
    expect({ exitCode, errors: stderr.match(/error:/g) }).toEqual({ exitCode: 1, errors: ['error:'] })
  })
})
