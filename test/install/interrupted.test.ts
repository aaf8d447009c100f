// SIGKILL in place of every system call that changes something, and at many moments between.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, it } from 'vitest'
import { sized } from '../helpers/size.ts'
import {
  BINARY,
  dotFiles,
  install,
  makeWorld,
  missing,
  needing,
  pluginDir,
  sameBytes,
  type World,
  writeDriver,
} from './world.ts'

const CHANGES =
  'mkdir,rename,copy_file_range,sendfile,write,ftruncate,fsync,flock,chmod,chown,fchmod,fchown,unlink,rmdir,symlink,openat'

/** Of the steps of a run, every how-many-th is struck, and so many moments of one are tried. */
const EVERY = sized(8, 2, 1)
const MOMENTS = sized(4, 16, 40)

/** The calls of one run that change something of the world: each with its number among those of its name. */
async function changesOf(world: World, argv: string[]): Promise<{ name: string; when: number }[]> {
  const file = join(world.base, 'trace')
  await execa('strace', ['-qq', '-y', '-e', 'signal=none', '-e', `trace=${CHANGES}`, '-o', file, ...argv])
  const counts = new Map<string, number>()
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const name = /^(\w+)\(/.exec(line)?.[1]
      if (name === undefined) return []
      const when = (counts.get(name) ?? 0) + 1
      counts.set(name, when)
      // Of a directory that is open, the call names only the handle.
      const isInWorld = line.includes(world.root) || line.includes('"/proc/self/fd/')
      const isChange = isInWorld && (name !== 'openat' || line.includes('O_CREAT'))
      return isChange ? [{ name, when }] : []
    })
}

const argvOf = (world: World, [verb = '', ...args]: string[]) => [
  BINARY,
  verb,
  ...['--root', world.root, '--plugin-dir', pluginDir],
  ...args,
]

function start(world: World, args: string[]) {
  const [file = '', ...rest] = argvOf(world, args)
  return spawn(file, rest, { stdio: 'ignore', detached: true })
}

/** What the kubelet would find: nothing, or one of the complete drivers. Anything else fails the test. */
function found(world: World, binaries: string[]) {
  if (!existsSync(world.driverDir)) return 'nothing'
  const at = binaries.findIndex((file) => sameBytes(file, world.driver))
  expect(at).toBeGreaterThanOrEqual(0)
  return `driver ${at}`
}

async function killedAtEveryStep(prepare: (world: World) => Promise<unknown>, args: (world: World) => string[]) {
  const traced = makeWorld()
  await prepare(traced)
  const outcomes: string[] = []
  const changes = await changesOf(traced, argvOf(traced, args(traced)))
  for (const { name, when } of changes.filter((_, index) => index % EVERY === 0 || index === changes.length - 1)) {
    const world = makeWorld()
    const binaries = [writeDriver(world, 'a'), writeDriver(world, 'b')]
    await prepare(world)
    const strike = ['-qq', '-o', '/dev/null', '-e', `trace=${name}`, '-e', `inject=${name}:signal=KILL:when=${when}`]
    const { signal } = await execa('strace', [...strike, ...argvOf(world, args(world))], { reject: false })
    expect([name, when, signal]).toEqual([name, when, 'SIGKILL'])
    outcomes.push(found(world, binaries))
    expect(await install(world, binaries[1] ?? '')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(found(world, binaries)).toBe('driver 1')
    expect(dotFiles(world)).toEqual([])
    expect(JSON.parse((await execa(world.driver, ['init'])).stdout)).toMatchObject({ version: 'b' })
  }
  return outcomes
}

const withB = (world: World) => ['install', '--binary', writeDriver(world, 'b')]

needing(missing.root, missing.strace, missing.dist).describe('killed at any system call', () => {
  const timeout = 600_000

  it('a first install killed at any system call leaves a complete driver or none, and the next install succeeds', {
    timeout,
  }, async () => {
    const outcomes = await killedAtEveryStep(async () => {}, withB)
    expect(outcomes.length).toBeGreaterThan(15 / EVERY)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 1', 'nothing'])
  })

  it('an upgrade killed at any system call leaves the old or the new driver, and the next upgrade succeeds', {
    timeout,
  }, async () => {
    const outcomes = await killedAtEveryStep((world) => install(world, writeDriver(world, 'a')), withB)
    expect(outcomes.length).toBeGreaterThan(8 / EVERY)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 0', 'driver 1'])
  })

  it('an uninstall killed at any system call leaves a complete driver or none, and the next uninstall succeeds', {
    timeout,
  }, async () => {
    const outcomes = await killedAtEveryStep(
      (world) => install(world, writeDriver(world, 'a')),
      () => ['uninstall'],
    )
    expect(outcomes.length).toBeGreaterThan(5 / EVERY)
    expect([...new Set(outcomes)].sort()).toEqual(['driver 0', 'nothing'])
  })
})

needing(missing.root, missing.dist).describe(
  'an install that is killed while the driver under test keeps running',
  () => {
    it('an install killed during the test of the new driver leaves no driver, and the next install succeeds', {
      timeout: 600_000,
    }, async () => {
      const world = makeWorld()
      const [slow, seen] = [join(world.base, 'slow'), join(world.base, 'seen')]
      writeFileSync(slow, `#!/bin/sh\n>${seen}\nsleep 1\necho '{"status":"Success"}'\n`, { mode: 0o755 })
      const child = start(world, ['install', '--binary', slow])
      const exit = once(child, 'exit')
      await expect.poll(() => existsSync(seen), { timeout: 600_000 }).toBe(true)
      child.kill('SIGKILL')
      await exit
      expect(found(world, [slow])).toBe('nothing')
      const binary = writeDriver(world, 'b')
      expect(await install(world, binary)).toMatchObject({ exitCode: 0, stderr: '' })
      await sleep(1200)
      expect(found(world, [binary])).toBe('driver 0')
      expect(dotFiles(world)).toEqual([])
    })
  },
)

needing(missing.root, missing.dist).describe('interrupted at any moment', () => {
  it.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)(
    'an upgrade interrupted by %s leaves the old or the new driver, and the next upgrade succeeds',
    { timeout: 600_000 },
    async (signal) => {
      const world = makeWorld()
      const binaries = [writeDriver(world, 'a'), writeDriver(world, 'b')]
      await install(world, binaries[0] ?? '')
      let interrupted = 0
      for (let moment = 0; moment < MOMENTS; moment += 1) {
        const next = binaries[(moment + 1) % 2] ?? ''
        const child = start(world, ['install', '--binary', next])
        const exit = once(child, 'exit')
        await sleep((moment * 240) / MOMENTS)
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
      expect(interrupted).toBeGreaterThan(MOMENTS / 8)
    },
  )

  it("an install removes only the installer's own leftovers", async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    for (const name of ['.modekeep~fs.Ab12Cd', '.other~fs.Ab12Cd', '.modekeep~fs.keepthis']) {
      mkdirSync(join(world.plugins, name))
      writeFileSync(join(world.plugins, name, 'fs'), 'x')
    }
    for (const name of ['.fs.Ab12Cd', '.notes']) writeFileSync(join(world.driverDir, name), 'x')
    const { exitCode, stdout } = await install(world, writeDriver(world, 'a'))
    expect(exitCode).toBe(0)
    expect(stdout.match(/^swept /gm)).toHaveLength(2)
    expect(dotFiles(world).sort()).toEqual(['.modekeep~fs.keepthis', '.notes', '.other~fs.Ab12Cd'])
  })
})
