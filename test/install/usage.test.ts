import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import { install, listing, makeWorld, missing, pluginDir, run, script, shells, skipFor, standIn } from './world.ts'

const sum = '0'.repeat(64)
const misuses: [string, string[], string][] = [
  ['an unknown option', ['--frce'], 'unknown option --frce'],
  ['an argument', ['dist/modekeep'], 'unexpected argument dist/modekeep'],
  ['an option without its value', ['--binary'], '--binary needs a value'],
  ['an empty value', ['--plugin-dir='], '--plugin-dir needs a value'],
  ['a relative plugin directory', ['--plugin-dir', 'exec'], '--plugin-dir needs an absolute path, got exec'],
  ['a sum that is none', ['--sha256', 'abc'], '--sha256 needs 64 hexadecimal digits'],
  ['a sum with a letter too many', ['--sha256', sum.replace('0', 'g')], '--sha256 needs 64 hexadecimal digits'],
  ['--purge alone', ['--purge'], '--purge goes with --uninstall'],
  ['--force alone', ['--force'], '--force goes with --uninstall'],
]

describe.each(shells.map((shell) => ({ name: shell.join(' '), shell })))('install.sh under $name', ({ shell }) => {
  it.each(misuses)('refuses %s with status 2 and a hint', async (_, args, message) => {
    const { exitCode, stdout, stderr } = await run(args, { shell })
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `error: ${message}\n       try: install.sh --help`,
    })
  })

  it('explains itself with examples', async () => {
    const { exitCode, stdout, stderr } = await run(['--help'], { shell })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('Examples:')
    const understood = [
      ...new Set(
        readFileSync(script, 'utf8')
          .match(/^ {6}(--[a-z0-9-]+ ?[|)] ?)+/gm)
          ?.join(' ')
          .match(/--[a-z0-9-]+/g),
      ),
    ]
    expect(stdout.match(/(?<=^ {2})--[a-z0-9-]+/gm)?.sort()).toEqual(understood.sort())
  })

  it.skipIf(skipFor(missing.setpriv))('refuses to change anything without root, but shows the steps', async () => {
    const world = makeWorld()
    // The checkout may not be readable for another user.
    const copy = join(world.base, 'install.sh')
    copyFileSync(script, copy)
    const args = [copy, '--root', world.root, '--plugin-dir', pluginDir, '--binary', standIn(world, 'a')]
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
  it.skipIf(skipFor(missing.shellcheck))('is clean for shellcheck', async () => {
    expect(await execa('shellcheck', ['-s', 'sh', script], { reject: false })).toMatchObject({
      exitCode: 0,
      stdout: '',
    })
  })

  it.skipIf(skipFor(missing.root))('prints no colour where no terminal reads it', async () => {
    const world = makeWorld()
    const { stdout, stderr } = await install(world, join(world.base, 'missing'), { env: { TERM: 'xterm' } })
    expect(`${stdout}${stderr}`).not.toContain('\x1b')
    expect(stderr).toContain('is not a readable, non-empty file')
  })
})
