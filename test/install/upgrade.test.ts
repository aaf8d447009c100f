import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, it } from 'vitest'
import { dotFiles, install, listing, makeWorld, missing, needing, sameBytes, writeDriver } from './world.ts'

needing(missing.root).describe('an upgrade, as kubelet sees it,', () => {
  it('an upgrade leaves the kubelet a complete driver at every moment', { timeout: 600_000 }, async () => {
    const world = makeWorld()
    const binaries = [writeDriver(world, 'a'), writeDriver(world, 'b')]
    const whole = binaries.map((file) => readFileSync(file, 'utf8'))
    await install(world, binaries[0] ?? '')
    let upgrading = true
    const seen = { answers: new Set<string>(), calls: 0, reads: 0 }
    const callers = [1, 2].map(async () => {
      while (upgrading) {
        seen.answers.add((await execa(world.driver, ['init'], { all: true })).all)
        seen.calls += 1
      }
    })
    const reader = (async () => {
      while (upgrading) {
        expect(whole).toContain(readFileSync(world.driver, 'utf8'))
        seen.reads += 1
        await sleep(0)
      }
    })()
    for (let round = 1; round <= 20; round += 1) {
      const result = await install(world, binaries[round % 2] ?? '')
      expect(result).toMatchObject({ exitCode: 0, stderr: '' })
      expect(result.stdout).toMatch(/^upgraded /m)
    }
    upgrading = false
    await Promise.all([...callers, reader])
    expect([...seen.answers].sort()).toEqual(['a', 'b'].map((v) => `{"status":"Success","version":"${v}"}`))
    expect(seen.calls).toBeGreaterThan(20)
    expect(seen.reads).toBeGreaterThan(20)
  })

  it('an upgrade is one event for one name to the kubelet', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    const events: string[] = []
    const watchers = [world.plugins, world.driverDir].map((directory) =>
      watch(directory, (event, name) => {
        if (!name?.startsWith('.')) events.push(`${event} ${name}`)
      }),
    )
    await install(world, writeDriver(world, 'b'))
    await sleep(50)
    for (const watcher of watchers) watcher.close()
    expect(events).toEqual(['rename fs'])
  })
})

const broken = {
  'that fails': '#!/bin/sh\necho \'{"status":"Success"}\'\nexit 3\n',
  'that prints nothing': '#!/bin/sh\n',
  'that replies Failure': '#!/bin/sh\necho \'{"status":"Failure","message":"no"}\'\n',
  'that warns on stderr': '#!/bin/sh\necho careful >&2\necho \'{"status":"Success"}\'\n',
  'that replies twice': '#!/bin/sh\necho \'{"status":"Success"}\'\necho \'{"status":"Success"}\'\n',
  'whose interpreter is missing': '#!/nonexistent/interpreter\n',
}

needing(missing.root).describe('an upgrade', () => {
  it.each(Object.entries(broken))(
    'an upgrade to an executable %s is refused, and the old driver is unchanged',
    async (_, text) => {
      const world = makeWorld()
      await install(world, writeDriver(world, 'a'))
      const file = join(world.base, 'broken')
      writeFileSync(file, text)
      const before = listing(world.plugins).filter(({ name }) => name.endsWith('/fs'))
      const { exitCode, stderr } = await install(world, file)
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/^error: .*broken does not work here: init gave /)
      expect(listing(world.plugins).filter(({ name }) => name.endsWith('/fs'))).toEqual(before)
      expect(dotFiles(world)).toEqual([])
    },
  )

  it('an upgrade tests the new driver at a path where only root can replace the file', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    chownSync(world.driverDir, 65534, 65534)
    chmodSync(world.driverDir, 0o777)
    const [file, seen] = [join(world.base, 'looks'), join(world.base, 'seen')]
    writeFileSync(file, `#!/bin/sh\nstat -c %a:%u:%g "$(dirname "$0")" >${seen}\necho '{"status":"Success"}'\n`)
    expect(await install(world, file)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(readFileSync(seen, 'utf8')).toBe('755:0:0\n')
  })

  it('an upgrade never runs a file that the kernel would not run', async () => {
    const world = makeWorld()
    const file = join(world.base, 'text')
    const trap = join(world.base, 'trap')
    writeFileSync(file, `touch ${trap}\necho '{"status":"Success"}'\n`)
    const text = await install(world, file)
    expect(text).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('is no executable') })
    expect(existsSync(trap)).toBe(false)
    const foreign = readFileSync(process.execPath).subarray(0, 4096)
    foreign.writeUInt16LE(0x1234, 18)
    writeFileSync(file, foreign)
    const other = await install(world, file)
    expect(other).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('built for another processor') })
    expect(existsSync(world.driver)).toBe(false)
  })

  it('a refused first install leaves no file', async () => {
    const world = makeWorld()
    const file = join(world.base, 'broken')
    writeFileSync(file, '#!/bin/sh\nexit 1\n')
    expect((await install(world, file)).exitCode).toBe(1)
    expect(listing(world.plugins).map(({ name }) => name)).toEqual([''])
  })

  it('an upgrade to the same bytes repairs a wrong mode by a rename, not in place', async () => {
    const world = makeWorld()
    await install(world, writeDriver(world, 'a'))
    chmodSync(world.driver, 0o644)
    const before = listing(world.driverDir).find(({ name }) => name === 'fs')
    expect((await install(world, writeDriver(world, 'a'))).stdout).toMatch(/^upgraded /m)
    const after = listing(world.driverDir).find(({ name }) => name === 'fs')
    expect(after?.mode).toBe(0o100755)
    expect(after?.ino).not.toBe(before?.ino)
  })

  it('a second install changes nothing in a plugin directory with the set-gid bit, which new directories inherit', async () => {
    const world = makeWorld()
    mkdirSync(world.plugins, { recursive: true })
    chmodSync(world.plugins, 0o2755)
    await install(world, writeDriver(world, 'a'))
    expect((await install(world, writeDriver(world, 'a'))).stdout).toMatch(/^unchanged /m)
  })

  it('many concurrent upgrades all succeed, one driver is complete, and nothing else remains', {
    timeout: 600_000,
  }, async () => {
    const world = makeWorld()
    const binaries = ['a', 'b', 'c'].map((version) => writeDriver(world, version))
    const runs = [...binaries, ...binaries].map((file) => install(world, file))
    for (const { exitCode, stderr } of await Promise.all(runs))
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(binaries.filter((file) => sameBytes(file, world.driver))).toHaveLength(1)
    expect(dotFiles(world)).toEqual([])
  })
})
