// What test/faults found, by name.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, it } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { linuxAdministration } from '../../src/kernel/linux/administration.ts'
import {
  BINARY,
  commandThat,
  dotFiles,
  install,
  makeWorld,
  missing,
  needing,
  pluginDir,
  put,
  runHere,
  unpacked,
  writeDriver,
} from './world.ts'

const sumOf = async (file: string) => (await execa('sha256sum', [file])).stdout.slice(0, 64)

needing(missing.root, missing.dist).describe('an install with a failing step', () => {
  it.each([
    ['od', 1],
    ['tr', 126],
    ['cut', 2],
    ['sha256sum', 1],
    ['awk', 127],
    ['uname', 2],
    ['mktemp', 1],
    ['cp', 1],
    ['chmod', 1],
  ])(
    'an install ends with an error and status 1, or continues, if the program %s exits with status %i',
    async (name, status) => {
      const world = makeWorld()
      const directory = unpacked(world)
      writeFileSync(join(directory, 'SHA256SUMS'), `${await sumOf(BINARY)}  modekeep\n`)
      const env = commandThat(world, name, `exit ${status}`)
      const args = [join(directory, 'install.sh'), '--root', world.root, '--plugin-dir', pluginDir]
      const { exitCode, stderr } = await execa('sh', [...args, '--binary', writeDriver(world, 'a')], {
        env,
        reject: false,
      })
      expect([0, 1]).toContain(exitCode)
      if (exitCode === 1) expect(stderr).toMatch(/^error: ./m)
      expect(exitCode === 0).toBe(existsSync(world.driver))
      if (!['cut', 'uname'].includes(name)) expect(exitCode).toBe(1)
    },
  )

  it('an install does not confuse a lock error with another running install', async () => {
    const world = makeWorld()
    const admin = {
      ...linuxAdministration,
      tryLockDirectory() {
        throw new SystemError('flock', 'ENOLCK', 'a lock')
      },
    }
    const args = ['--root', world.root, '--plugin-dir', pluginDir, '--binary', writeDriver(world, 'a')]
    const { exitCode, stderr } = await runHere(['install', ...args], admin)
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`error: cannot lock ${world.plugins}`)
  })

  it('a shell reads nothing more from an install script that is replaced while running', async () => {
    const world = makeWorld()
    const copy = join(unpacked(world), 'install.sh')
    const env = commandThat(
      world,
      'od',
      `printf 'echo read >&2\\n%.0s' $(seq 5000) >'${copy}'\nPATH=\${PATH#*:} exec od "$@"`,
    )
    const args = [copy, '--root', world.root, '--plugin-dir', pluginDir, '--binary', writeDriver(world, 'a')]
    expect(await execa('sh', args, { env, reject: false })).toMatchObject({ exitCode: 0, stderr: '' })
    expect(readFileSync(copy, 'utf8')).toContain('echo read')
  })

  it('an install with an error of the script prints one error message', async () => {
    const world = makeWorld()
    const { exitCode, stderr } = await install(world, join(world.base, 'none'))
    expect({ exitCode, errors: stderr.match(/error:/g) }).toEqual({ exitCode: 1, errors: ['error:'] })
  })

  it('an install removes the partial files of a killed install even if there is nothing to write again', async () => {
    const world = makeWorld()
    const driver = writeDriver(world, 'a')
    expect(await install(world, driver)).toMatchObject({ exitCode: 0 })
    put(world, 'etc/modekeep/config.example.json.new', 'half')
    put(world, 'usr/local/sbin/.modekeep.new', 'half')
    expect(await install(world, driver)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(dotFiles(world)).toEqual([])
    expect(readdirSync(join(world.root, 'etc/modekeep'))).toEqual(['config.example.json'])
  })
})
