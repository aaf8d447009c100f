// What test/faults found, by name.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import {
  commandThat,
  dotFiles,
  install,
  makeWorld,
  missing,
  pluginDir,
  put,
  script,
  skipFor,
  standIn,
} from './world.ts'

describe.skipIf(skipFor(missing.root))('an install in which something fails', () => {
  it.each([
    ['find', 1],
    ['find', 126],
    ['dirname', 3],
    ['uname', 2],
  ])('ends with an error and status 1 where %s ends with %i, or goes on without it', async (name, status) => {
    const world = makeWorld()
    const env = commandThat(world, name, `exit ${status}`)
    const { exitCode, stderr } = await install(world, standIn(world, 'a'), { env })
    expect([0, 1]).toContain(exitCode)
    if (exitCode === 1) expect(stderr).toMatch(/^error: ./m)
    if (name === 'find') expect(exitCode).toBe(1)
  })

  it('does not take a lock that cannot be asked for for that of another install', async () => {
    const world = makeWorld()
    const env = commandThat(world, 'flock', 'exit 71')
    const { exitCode, stderr } = await install(world, standIn(world, 'a'), { env })
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`error: cannot lock ${world.plugins}`)
  })

  it('reads nothing more of a script that is replaced while it runs', async () => {
    const world = makeWorld()
    const copy = join(world.base, 'install.sh')
    copyFileSync(script, copy)
    const env = commandThat(world, 'ln', `printf 'echo read >&2\\n%.0s' $(seq 5000) >'${copy}'\nexec /bin/ln "$@"`)
    const args = [copy, '--root', world.root, '--plugin-dir', pluginDir, '--binary', standIn(world, 'a')]
    expect(await execa('sh', args, { env, reject: false })).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('says it once where the script itself has said what is wrong', async () => {
    const world = makeWorld()
    const { exitCode, stderr } = await install(world, join(world.base, 'none'))
    expect({ exitCode, errors: stderr.match(/error:/g) }).toEqual({ exitCode: 1, errors: ['error:'] })
  })

  it('removes what a killed one was writing, also where nothing is to be written again', async () => {
    const world = makeWorld()
    const driver = standIn(world, 'a')
    expect(await install(world, driver)).toMatchObject({ exitCode: 0 })
    put(world, 'etc/modekeep/.config.example.json.new', 'half')
    put(world, 'usr/local/sbin/.modekeep.new', 'half')
    expect(await install(world, driver)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(dotFiles(world)).toEqual([])
  })
})
