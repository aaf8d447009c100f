import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { expect } from 'vitest'
import { type FaultPoint, type Program, runToEnd } from '../../helpers/inject.ts'
import type { TracedCall } from '../../helpers/strace-text.ts'
import { BINARY, dotFiles, makeWorldIn, pluginDir, sameBytes, type World, writeDriver } from '../../install/world.ts'
import { isItsOwn, ownCalls } from '../own-calls.ts'
import type { After, Scenario } from '../scenario.ts'

/** The installer's own calls from its first look at the executable on; the driver that is tried is another process. */
function pointsOf(calls: readonly TracedCall[], top: string): FaultPoint[] {
  const own = calls.filter(({ thread }) => thread === calls[0]?.thread)
  return ownCalls(own, `${top}/driver-b`)
}

/** What kubelet would find: nothing, or one of the complete drivers. Anything else fails. */
function found(world: World, drivers: readonly string[]): string {
  if (!fs.existsSync(world.driverDir)) return 'nothing'
  if (!fs.existsSync(world.driver)) return 'a directory without a driver'
  const at = drivers.findIndex((file) => sameBytes(file, world.driver))
  return at < 0 ? 'a driver that is not whole' : `driver ${at}`
}

interface Installing {
  title: string
  /** Which of two drivers is there before, if any. */
  isUpgrade: boolean
}

function installing({ title, isUpgrade }: Installing): Scenario {
  const base = fs.mkdtempSync(`${tmpdir()}/modekeep-faults-`)
  const world = makeWorldIn(base)
  const drivers = ['a', 'b'].map((version) => writeDriver(world, version))
  const argv = (driver = '') => [BINARY, 'install', '--root', world.root, '--plugin-dir', pluginDir, '--binary', driver]
  const program = (driver = drivers[1]): Program => ({ argv: argv(driver), env: { PATH: process.env.PATH }, top: base })
  const before = `${base}/before`
  const allowed = isUpgrade ? ['driver 0', 'driver 1'] : ['nothing', 'driver 1']
  const succeed = async (driver?: string) => {
    const { code, errors } = await runToEnd(program(driver))
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
  }
  return {
    title,
    program: () => program(),
    async prepare() {
      if (isUpgrade && !fs.existsSync(before)) {
        await succeed(drivers[0])
        fs.renameSync(world.root, before)
      }
      fs.rmSync(world.root, { recursive: true, force: true })
      if (isUpgrade) execFileSync('cp', ['-a', before, world.root])
      else fs.mkdirSync(world.root)
    },
    points(ended, calls) {
      expect(ended.code, ended.errors).toBe(0)
      return pointsOf(calls, base)
    },
    isRuntimes: (struck) => !isItsOwn(struck),
    async check({ ended }: After) {
      const now = found(world, drivers)
      expect(allowed).toContain(now)
      if (ended.signal === null) {
        expect([0, 1]).toContain(ended.code)
        if (ended.code === 1) expect(ended.errors).toMatch(/error: .{10}/)
      }
      if (ended.code === 0) expect(now).toBe('driver 1')
      await succeed()
      expect(found(world, drivers)).toBe('driver 1')
      expect(dotFiles(world)).toEqual([])
      expect(fs.lstatSync(world.link).isSymbolicLink()).toBe(true)
      expect(JSON.parse(execFileSync(world.driver, ['init'], { encoding: 'utf8' }))).toMatchObject({ version: 'b' })
    },
    close: () => fs.rmSync(base, { recursive: true, force: true }),
  }
}

export const INSTALL = [
  () => installing({ title: 'first install', isUpgrade: false }),
  () => installing({ title: 'upgrade', isUpgrade: true }),
]
