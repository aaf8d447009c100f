import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import { getVerbForm } from '../../src/cli/commands/index.ts'
import {
  BINARY,
  install,
  listing,
  makeWorld,
  missing,
  needing,
  pluginDir,
  run,
  script,
  shells,
  writeDriver,
} from './world.ts'

const sum = '0'.repeat(64)
const misuses: [string, string[], RegExp][] = [
  ['an unknown option', ['--frce'], /install has no option "--frce": it takes --binary/],
  ['an argument', ['dist/modekeep'], /install is about the whole node, got "dist\/modekeep"/],
  ['an option without its value', ['--binary'], /--binary has no value: write a path after it/],
  ['an empty value', ['--plugin-dir='], /--plugin-dir is "": write an absolute path/],
  ['the root as plugin directory', ['--plugin-dir', '/'], /--plugin-dir is "\/": write a directory below it/],
  ['a relative plugin directory', ['--plugin-dir', 'exec'], /--plugin-dir is "exec": write an absolute path/],
  ['an invalid sum', ['--sha256', 'abc'], /--sha256 is "abc": write 64 hexadecimal digits/],
  ['a sum with an extra digit', ['--sha256', sum.replace('0', 'g')], /--sha256 is .*: write 64 hexadecimal digits/],
  ['--purge without --uninstall', ['--purge'], /install has no option "--purge": it takes/],
  ['--force without --uninstall', ['--force'], /install has no option "--force": it takes/],
]

describe('the installer', () => {
  it.each(misuses)('refuses %s with status 2 and a hint', async (_, args, message) => {
    const { exitCode, stdout, stderr } = await run(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^modekeep: .*$/)
    expect(stderr).toMatch(message)
  })
})

describe.each(shells.map((shell) => ({ name: shell.join(' '), shell })))('install.sh under $name', ({ shell }) => {
  it('install.sh prints its usage with examples', async () => {
    const { exitCode, stdout, stderr } = await run(['--help'], { shell })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('Examples:')
    expect(stdout).toContain('--uninstall')
    const options = Object.keys(getVerbForm('install').options).map((name) => `--${name}`)
    expect(stdout.match(/(?<=^ {2}(?:-\w, )?)--[a-z0-9-]+/gm)?.sort()).toEqual(options.sort())
    const removing = await run(['--help', '--uninstall'], { shell })
    expect(removing.stdout).toMatch(/^modekeep uninstall/)
  })

  needing(missing.setpriv).it('install.sh refuses every change without root, but prints the steps', async () => {
    const world = makeWorld()
    // The checkout may not be readable for another user.
    const copy = join(world.base, 'install.sh')
    copyFileSync(script, copy)
    copyFileSync(BINARY, join(world.base, 'modekeep'))
    const args = [copy, '--root', world.root, '--plugin-dir', pluginDir, '--binary', writeDriver(world, 'a')]
    const asNobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups', ...shell, ...args]
    const before = listing(world.root)
    const refused = await execa('setpriv', asNobody, { reject: false })
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^error: this needs root\n/) })
    const shown = await execa('setpriv', [...asNobody, '--dry-run'], { reject: false })
    expect(shown).toMatchObject({ exitCode: 0, stderr: '', stdout: expect.stringMatching(/^would /m) })
    expect(listing(world.root)).toEqual(before)
  })
})

describe('install.sh', () => {
  needing(missing.shellcheck).it('install.sh has no shellcheck warning', async () => {
    expect(await execa('shellcheck', ['-s', 'sh', script], { reject: false })).toMatchObject({
      exitCode: 0,
      stdout: '',
    })
  })

  needing(missing.root).it('install.sh prints no colour if stdout is no terminal', async () => {
    const world = makeWorld()
    const { stdout, stderr } = await install(world, join(world.base, 'missing'), { env: { TERM: 'xterm' } })
    expect(`${stdout}${stderr}`).not.toContain('\x1b')
    expect(stderr).toContain('is not a readable, non-empty file')
  })
})
