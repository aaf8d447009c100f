// kill -9 at every command that changes something, and at many moments between.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { describe, expect, it } from 'vitest'
import {
  dotFiles,
  install,
  makeWorld,
  missing,
  pluginDir,
  sameBytes,
  script,
  skipFor,
  standIn,
  type World,
} from './world.ts'

const commands = ['mkdir', 'mktemp', 'cp', 'chown', 'chmod', 'sync', 'env', 'mv', 'rm', 'rmdir', 'ln', 'flock', 'cat']

/** How the killer strikes: the whole process group before or after the command, or the script alone, its child living on. */
const manners = {
  'all at once, before a command': 'kill -9 0',
  'all at once, after a command': '"$real" "$@"; kill -9 0',
  'the script alone': 'kill -9 "$(cut -d" " -f5 /proc/self/stat)"; sleep 0.02; exec "$real" "$@"',
}

/** Commands that count themselves and strike when the count is reached. */
async function ambush(world: World, strike: string, at: number) {
  const directory = join(world.base, `ambush-${at}`)
  const count = join(directory, 'count')
  mkdirSync(directory)
  writeFileSync(count, '')
  for (const name of commands) {
    const real = (await execa('sh', ['-c', `command -v ${name}`])).stdout
    const text = `#!/bin/sh\nreal=${real}\nprintf x >>${count}\n[ "$(wc -c <${count})" != ${at} ] || { ${strike}; exit; }\nexec "$real" "$@"\n`
    writeFileSync(join(directory, name), text, { mode: 0o755 })
  }
  return directory
}

function start(world: World, args: string[], tools = '') {
  const env = { ...process.env, PATH: `${tools}:${process.env.PATH}` }
  const all = [script, '--root', world.root, '--plugin-dir', pluginDir, ...args]
  return spawn('sh', all, { env, stdio: 'ignore', detached: true })
}

/** What the kubelet would find: nothing, or one of the complete drivers. Anything else fails the test. */
function found(world: World, binaries: string[]) {
  if (!existsSync(world.driverDir)) return 'nothing'
  const at = binaries.findIndex((file) => sameBytes(file, world.driver))
  expect(at).toBeGreaterThanOrEqual(0)
  return `driver ${at}`
}

async function killedAtEveryStep(
  strike: string,
  prepare: (world: World) => Promise<unknown>,
  args: (world: World) => string[],
) {
  const outcomes: string[] = []
  for (let at = 1, killed = true; killed; at += 1) {
    const world = makeWorld()
    const binaries = [standIn(world, 'a'), standIn(world, 'b')]
    await prepare(world)
    const [, signal] = await once(start(world, args(world), await ambush(world, strike, at)), 'exit')
    killed = signal === 'SIGKILL'
    outcomes.push(found(world, binaries))
    expect(await install(world, binaries[1] ?? '')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(found(world, binaries)).toBe('driver 1')
    expect(dotFiles(world)).toEqual([])
    expect(JSON.parse((await execa(world.driver, ['init'])).stdout)).toMatchObject({ version: 'b' })
  }
  return outcomes
}

const withB = (world: World) => ['--binary', standIn(world, 'b')]

describe.skipIf(skipFor(missing.root)).each(Object.entries(manners))('killed -9, %s', (_, strike) => {
  const timeout = 240_000

  it('a first install leaves nothing or all of the driver, and the next run mends', { timeout }, async () => {
    const outcomes = await killedAtEveryStep(strike, async () => {}, withB)
    expect(outcomes.length).toBeGreaterThan(15)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 1', 'nothing'])
  })

  it('an upgrade leaves the old or the new driver, and the next run mends', { timeout }, async () => {
    const outcomes = await killedAtEveryStep(strike, (world) => install(world, standIn(world, 'a')), withB)
    expect(outcomes.length).toBeGreaterThan(8)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 0', 'driver 1'])
  })

  it('an uninstall leaves all or nothing of the driver, and the next run mends', { timeout }, async () => {
    const outcomes = await killedAtEveryStep(
      strike,
      (world) => install(world, standIn(world, 'a')),
      () => ['--uninstall'],
    )
    expect(outcomes.length).toBeGreaterThan(5)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 0', 'nothing'])
  })
})

describe.skipIf(skipFor(missing.root))('interrupted at any moment', () => {
  it.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)(
    'by %s, an upgrade leaves the old or the new driver, and the next run mends',
    { timeout: 120_000 },
    async (signal) => {
      const world = makeWorld()
      const binaries = [standIn(world, 'a'), standIn(world, 'b')]
      await install(world, binaries[0] ?? '')
      let interrupted = 0
      for (let moment = 0; moment < 40; moment += 1) {
        const next = binaries[(moment + 1) % 2] ?? ''
        const child = start(world, ['--binary', next])
        const exit = once(child, 'exit')
        await sleep(moment * 3)
        if (child.exitCode === null && child.pid) process.kill(-child.pid, signal)
        const [code] = await exit
        if (code !== 0) interrupted += 1
        expect(found(world, binaries)).toMatch(/^driver/)
        // A signal that can be caught leaves nothing to sweep.
        if (signal !== 'SIGKILL') expect(dotFiles(world)).toEqual([])
        expect((await install(world, next)).exitCode).toBe(0)
        expect(readFileSync(world.driver).equals(readFileSync(next))).toBe(true)
        expect(dotFiles(world)).toEqual([])
      }
      expect(interrupted).toBeGreaterThan(5)
    },
  )

  it('sweeps only its own leftovers', async () => {
    const world = makeWorld()
    await install(world, standIn(world, 'a'))
    for (const name of ['.modekeep~fs.Ab12Cd', '.other~fs.Ab12Cd', '.modekeep~fs.keepthis']) {
      mkdirSync(join(world.plugins, name))
      writeFileSync(join(world.plugins, name, 'fs'), 'x')
    }
    for (const name of ['.fs.Ab12Cd', '.notes']) writeFileSync(join(world.driverDir, name), 'x')
    const { exitCode, stdout } = await install(world, standIn(world, 'a'))
    expect(exitCode).toBe(0)
    expect(stdout.match(/^swept /gm)).toHaveLength(2)
    expect(dotFiles(world).sort()).toEqual(['.modekeep~fs.keepthis', '.notes', '.other~fs.Ab12Cd'])
  })
})
