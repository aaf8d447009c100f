// install.sh finds the executable, compares its sum and hands over.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import { sized } from '../helpers/size.ts'
import {
  BINARY,
  bindMount,
  commandThat,
  dotFiles,
  install,
  makeWorld,
  missing,
  needing,
  pluginDir,
  run,
  sameBytes,
  script,
  shells,
  uninstall,
  unpacked,
  type World,
  writeDriver,
} from './world.ts'

/** Busybox's too in a long run, as each of these tests copies the executable. */
const tried = sized(shells.slice(0, 1), shells)
const executable = needing(missing.root, missing.dist)

const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
const below = (world: World) => ['--root', world.root, '--plugin-dir', pluginDir]

describe.skipIf(executable.isMissing).each(tried.map((shell) => [shell.join(' '), shell] as const))(
  executable.titled('install.sh under %s'),
  (_name, shell) => {
    const [sh = 'sh', ...applet] = shell
    /** The release's own install.sh. */
    const released = (directory: string, args: string[]) =>
      execa(sh, [...applet, join(directory, 'install.sh'), ...args], { reject: false })

    it('install.sh installs, upgrades, reports an unchanged driver, and uninstalls', async () => {
      const world = makeWorld()
      const [a, b] = [writeDriver(world, 'a'), writeDriver(world, 'b')]
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

    it('install.sh works in a release archive, with the executable next to the script', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      const without = await released(directory, below(world))
      expect(without).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--binary FILE') })
      symlinkSync(BINARY, join(directory, 'modekeep'))
      expect((await released(directory, below(world))).stdout).toMatch(/^installed/m)
      expect(sameBytes(world.driver, BINARY)).toBe(true)
    })

    it('install.sh runs the named executable instead of the installed one', async () => {
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
    ])('install.sh uninstalls with an executable that is named %s', async (_how, named) => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      await released(directory, [...below(world), `--binary=${BINARY}`])
      const result = await released(directory, [...named(), ...below(world)])
      expect([result.exitCode, result.stderr]).toEqual([0, ''])
      expect(existsSync(world.driver)).toBe(false)
    })

    it.each([
      ['the named executable', (binary: string) => `--binary=${binary}`],
      ['the file next to the script', () => '--dry-run'],
    ])('install.sh installs %s although the file next to the script may not be executed', async (_what, named) => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      copyFileSync(BINARY, join(directory, 'modekeep'))
      chmodSync(join(directory, 'modekeep'), 0o644)
      const { exitCode, stderr } = await released(directory, [...below(world), named(writeDriver(world, 'a'))])
      expect([exitCode, stderr]).toEqual([0, ''])
    })

    needing(missing.mounts).it('install.sh installs from a file system that is mounted noexec', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      copyFileSync(BINARY, join(directory, 'modekeep'))
      await bindMount(directory)
      await execa('mount', ['-o', 'remount,bind,noexec', directory])
      expect(await released(directory, below(world))).toMatchObject({ exitCode: 0, stderr: '' })
      expect(sameBytes(world.driver, BINARY)).toBe(true)
      expect(await released(directory, [...below(world), '--uninstall'])).toMatchObject({ exitCode: 0, stderr: '' })
    })

    it('install.sh uses the named executable if the file next to the script is no program', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      writeFileSync(join(directory, 'modekeep'), '<html>not found</html>', { mode: 0o755 })
      const { exitCode, stderr } = await released(directory, [...below(world), '--binary', BINARY])
      expect([exitCode, stderr]).toEqual([0, ''])
      expect(sameBytes(world.driver, BINARY)).toBe(true)
    })

    it('install.sh fails with an executable of an early version without commands', async () => {
      const world = makeWorld()
      const directory = unpacked(world)
      rmSync(join(directory, 'modekeep'))
      const old = `case $1 in version) echo 'modekeep 0.1.0' ;; *) echo '{"status":"Not supported"}' ;; esac`
      writeFileSync(join(directory, 'modekeep'), `#!/bin/sh\n${old}\n`, { mode: 0o755 })
      for (const [verb, args] of [
        ['install', []],
        ['uninstall', ['--uninstall']],
      ] as const) {
        const { exitCode, stderr } = await released(directory, [...below(world), ...args])
        expect([exitCode, stderr]).toEqual([
          1,
          expect.stringContaining(`older than this script: it has no verb ${verb}`),
        ])
      }
    })

    it.each([
      ['by SHA256SUMS', (wrong: string) => [`${wrong}  modekeep\n`]],
      ['by SHA256SUMS without its sum', (wrong: string) => [`${wrong}  install.sh\n`]],
      ['by --sha256', (wrong: string) => ['', `--sha256=${wrong}`]],
      ['by --sha256 of the named executable', (wrong: string) => ['', '--sha256', wrong, '--binary', './modekeep']],
    ])('install.sh runs no part of an executable that is refused %s', async (_how, given) => {
      const world = makeWorld()
      const directory = unpacked(world)
      const [trap, runner] = [join(world.base, 'trap'), join(directory, 'modekeep')]
      rmSync(runner)
      writeFileSync(runner, `#!/bin/sh\n>${trap}\necho 'modekeep install'\n`, { mode: 0o755 })
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
        'cannot start, and reports it as to kubelet',
        '#!/bin/sh\necho \'{"status":"Failure"}\'\n',
        'does not work here',
      ],
      ['ends at once', '#!/bin/sh\nexit 3\n', 'does not work here'],
    ])('install.sh refuses an executable next to the script that %s', async (_what, text, message) => {
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

/** Where install.sh made its directories, and the environment that writes it down. */
function watchedCopies(world: World, before = '') {
  const file = join(world.base, 'copies')
  const env = commandThat(world, 'mktemp', `${before}\nPATH=\${PATH#*:}\nmktemp "$@" | tee -a '${file}'`)
  return { env, copies: () => readFileSync(file, 'utf8').trim().split('\n') }
}

describe.skipIf(executable.isMissing).each(tried.map((shell) => [shell.join(' '), shell] as const))(
  executable.titled('the copy that install.sh under %s runs'),
  (_name, shell) => {
    it.each([
      ['a dry run', ['--dry-run'], 0],
      ['an install', [], 0],
      ['a refused executable', ['--frce'], 2],
      ['help', ['--help'], 0],
    ])('the copy that install.sh runs is removed after %s', async (_what, args, status) => {
      const world = makeWorld()
      const { env, copies } = watchedCopies(world)
      const { exitCode } = await run([...below(world), ...args], { shell, env })
      expect([exitCode, copies().map((path) => existsSync(path))]).toEqual([status, [false]])
    })

    it('install.sh copies the executable to the next directory if the first has no space', async () => {
      const world = makeWorld()
      const { env, copies } = watchedCopies(world, 'case $2 in /run/*) exit 1 ;; esac')
      expect(await run([...below(world), '--dry-run'], { shell, env })).toMatchObject({ exitCode: 0, stderr: '' })
      expect(copies().map((path) => [dirname(path), existsSync(path)])).toEqual([['/var/lib', false]])
    })

    it.each([
      ['SIGTERM', 143],
      ['SIGINT', 130],
      ['SIGHUP', 129],
    ] as const)(
      'the copy that install.sh runs is removed after %s, which also ends the install',
      async (signal, status) => {
        const world = makeWorld()
        const { env, copies } = watchedCopies(world)
        const trying = join(world.base, 'trying')
        const slow = join(world.base, 'slow')
        writeFileSync(slow, `#!/bin/sh\n>${trying}\nexec sleep 20\n`, { mode: 0o755 })
        const [sh = 'sh', ...applet] = shell
        const running = execa(sh, [...applet, script, ...below(world), '--binary', slow], { env, reject: false })
        await expect.poll(() => existsSync(trying), { timeout: 20_000 }).toBe(true)
        running.kill(signal)
        const { exitCode, isTerminated } = await running
        expect([exitCode, isTerminated, copies().map((path) => existsSync(path))]).toEqual([status, false, [false]])
        expect([existsSync(world.driverDir), dotFiles(world)]).toEqual([false, []])
      },
    )

    it.each(['by SHA256SUMS', 'by --sha256'])(
      'install.sh runs the copy that was compared %s, even if the original file is replaced afterwards',
      async (by) => {
        const world = makeWorld()
        const directory = unpacked(world)
        const [trap, file] = [join(world.base, 'trap'), join(directory, 'modekeep')]
        rmSync(file)
        copyFileSync(BINARY, file)
        const sum = sumOf(file)
        if (by === 'by SHA256SUMS') writeFileSync(join(directory, 'SHA256SUMS'), `${sum}  modekeep\n`)
        const evil = `#!/bin/sh\n>${trap}\necho "modekeep $1"\n`
        writeFileSync(join(world.base, 'evil'), evil, { mode: 0o755 })
        const exchange = `PATH=\${PATH#*:} sha256sum "$@"; mv '${world.base}/evil' '${file}'`
        const [sh = 'sh', ...applet] = shell
        const args = [
          join(directory, 'install.sh'),
          ...below(world),
          ...(by === 'by --sha256' ? ['--sha256', sum] : []),
        ]
        const env = commandThat(world, 'sha256sum', exchange)
        const { exitCode, stderr } = await execa(sh, [...applet, ...args], { env, reject: false })
        expect(readFileSync(file, 'utf8')).toBe(evil)
        expect([exitCode, stderr, existsSync(trap)]).toEqual([0, '', false])
        expect(sumOf(world.driver)).toBe(sum)
      },
    )
  },
)

executable.describe('install.sh', () => {
  it('install.sh does not run an executable for another processor', async () => {
    const world = makeWorld()
    const directory = unpacked(world)
    rmSync(join(directory, 'modekeep'))
    const foreign = readFileSync(process.execPath).subarray(0, 4096)
    foreign.writeUInt16LE(0x1234, 18)
    writeFileSync(join(directory, 'modekeep'), foreign, { mode: 0o755 })
    const { exitCode, stderr } = await execa('sh', [join(directory, 'install.sh'), ...below(world)], { reject: false })
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('built for another processor')])
  })

  needing(missing.busybox).it('install.sh works with only the tools of busybox', async () => {
    const world = makeWorld()
    const tools = join(world.base, 'tools')
    await execa('busybox', ['--install', '-s', tools], { reject: false })
    mkdirSync(tools, { recursive: true })
    const { stdout } = await execa('busybox', ['--list'])
    const busybox = (await execa('sh', ['-c', 'command -v busybox'])).stdout
    for (const applet of stdout.split('\n')) symlinkSync(busybox, join(tools, applet))
    const env = { PATH: tools }
    const shell = [join(tools, 'sh')]
    expect(await install(world, writeDriver(world, 'a'), { shell, env })).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await install(world, writeDriver(world, 'b'), { shell, env })).toMatchObject({ exitCode: 0, stderr: '' })
    expect(sameBytes(world.driver, writeDriver(world, 'b'))).toBe(true)
    expect(dotFiles(world)).toEqual([])
  })

  it('install.sh has fewer than 100 lines, because the executable does the work', () => {
    expect(readFileSync(script, 'utf8').split('\n').length - 1).toBeLessThan(100)
  })

  it('install.sh reports an error once', async () => {
    const world = makeWorld()
    const { exitCode, stderr } = await run([...below(world), '--binary', join(world.base, 'none')], { shell: ['sh'] })
    expect({ exitCode, errors: stderr.match(/error:/g) }).toEqual({ exitCode: 1, errors: ['error:'] })
  })
})
