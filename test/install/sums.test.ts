import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { linuxAdministration } from '../../src/kernel/linux/administration.ts'
import {
  install,
  makeWorld,
  missing,
  needing,
  otherwise,
  pluginDir,
  runHere,
  type World,
  writeDriver,
} from './world.ts'

const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

/** SHA256SUMS next to a fake driver, as in a release. */
function sums(world: World, text: string): void {
  writeFileSync(join(world.base, 'SHA256SUMS'), text)
}

const OTHER = `${'0'.repeat(64)}  install.sh\n`

needing(missing.root).describe('a SHA256SUMS file next to the executable', () => {
  it.each([
    ['in the format of sha256sum', (sum: string) => `${OTHER}${sum}  driver-1\n`],
    ['with the binary mark', (sum: string) => `${sum} *driver-1\n${OTHER}`],
    ['in upper case', (sum: string) => `${sum.toUpperCase()}  driver-1\n`],
  ])('a SHA256SUMS file next to the executable is checked: %s', async (_form, text) => {
    const world = makeWorld()
    const binary = writeDriver(world, '1')
    sums(world, text(sumOf(binary)))
    expect(await install(world, binary)).toMatchObject({ exitCode: 0, stderr: '' })
    writeFileSync(binary, `${readFileSync(binary, 'utf8')}\n`)
    const refused = await install(world, binary)
    expect(refused).toMatchObject({ exitCode: 1 })
    expect(refused.stderr).toContain(`${binary} is not the file that ${world.base}/SHA256SUMS asks for: fetch it again`)
    expect(refused.stderr).toContain(`found    ${sumOf(binary)}`)
    // The driver that was there still is.
    expect(sumOf(world.driver)).not.toBe(sumOf(binary))
  })

  it.each([
    ['lists only other files', OTHER],
    ['lists only a longer name', `${'1'.repeat(64)}  old/driver-1\n`],
    ['has no sum in its line', `${'x'.repeat(64)}  driver-1\n`],
    ['is empty', ''],
  ])('an install is refused if the SHA256SUMS file %s', async (_what, text) => {
    const world = makeWorld()
    const binary = writeDriver(world, '1')
    sums(world, text)
    const refused = await install(world, binary)
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('SHA256SUMS has no sum of driver-1'),
    })
    expect(refused.stderr).toContain('--sha256 SUM')
    expect(existsSync(world.driverDir)).toBe(false)
  })

  it('a SHA256SUMS file is not used if --sha256 is given', async () => {
    const world = makeWorld()
    const binary = writeDriver(world, '1')
    sums(world, `${'0'.repeat(64)}  driver-1\n`)
    expect((await install(world, binary, {}, '--dry-run')).exitCode).toBe(1)
    expect((await install(world, binary, {}, '--sha256', sumOf(binary))).exitCode).toBe(0)
  })
})

needing(missing.root).describe('an executable that is replaced after its sum was compared', () => {
  it('an executable that is replaced after its sum was compared does not count as the installed one', async () => {
    const world = makeWorld()
    const [old, wanted] = [writeDriver(world, 'old'), writeDriver(world, 'wanted')]
    await install(world, old)
    const file = join(world.base, 'driver')
    copyFileSync(wanted, file)
    const { open } = linuxAdministration.files
    const admin = otherwise({
      open(path) {
        const opened = open(path)
        const sum = () => {
          const found = opened.sum()
          copyFileSync(old, file)
          return found
        }
        return { ...opened, sum }
      },
    })
    const args = ['--root', world.root, '--plugin-dir', pluginDir, '--binary', file, '--sha256', sumOf(wanted)]
    const refused = await runHere(['install', ...args], admin)
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('asks for: fetch it again') })
    expect(sumOf(world.driver)).toBe(sumOf(old))
  })

  it('an executable that is replaced between inspection and copy is refused, also without a required sum', async () => {
    const world = makeWorld()
    const [looked, other] = [writeDriver(world, 'looked'), writeDriver(world, 'other')]
    const { open } = linuxAdministration.files
    const admin = otherwise({
      open(path) {
        const opened = open(path)
        const copyTo = (to: string) => {
          writeFileSync(looked, readFileSync(other))
          return opened.copyTo(to)
        }
        return { ...opened, copyTo }
      },
    })
    const args = ['--root', world.root, '--plugin-dir', pluginDir, '--binary', looked]
    const refused = await runHere(['install', ...args], admin)
    expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('while it was copied: run this')])
    expect(existsSync(world.driver)).toBe(false)
  })

  it('an install copies the file whose sum was compared, not the file that has replaced it', async () => {
    const world = makeWorld()
    const [looked, other] = [writeDriver(world, 'looked'), writeDriver(world, 'other')]
    const wanted = sumOf(looked)
    const { open } = linuxAdministration.files
    const admin = otherwise({
      open(path) {
        const opened = open(path)
        if (path === looked) renameSync(other, looked)
        return opened
      },
    })
    const args = ['--root', world.root, '--plugin-dir', pluginDir, '--binary', looked]
    expect(await runHere(['install', ...args], admin)).toMatchObject({ exitCode: 0 })
    expect(sumOf(world.driver)).toBe(wanted)
  })
})
