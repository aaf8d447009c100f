import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { prepareApplication } from '../../scripts/build/application.ts'
import { ELF_SEGMENT_TYPES, readElfSegments } from '../../scripts/build/elf.ts'
import { CARRIED_LIBRARIES, provideDebianLibraries } from '../../scripts/build/libraries.ts'
import { findNewestGlibcVersion, readVersionNeeds } from '../../scripts/build/needed.ts'
import { buildProgram } from '../../scripts/build/program.ts'
import { ARCHITECTURES, type Architecture } from '../../scripts/build/runtime.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'

const OLDEST_GLIBC = '2.28'

const node = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`)
const carried = skipIfUnavailable(provideDebianLibraries)
const isAtMost = (version: string) =>
  /^\d/.test(version) && version.localeCompare(OLDEST_GLIBC, 'en', { numeric: true }) <= 0

describe('the host libraries that the executable needs', () => {
  const files = ARCHITECTURES.flatMap((arch) => CARRIED_LIBRARIES.map((soname) => [arch, soname] as const))

  it.each(files)(`%s: %s needs no glibc newer than ${OLDEST_GLIBC}`, (arch, soname) => {
    const library = carried(arch).find((one) => one.soname === soname)
    expect(isAtMost(findNewestGlibcVersion([library?.bytes ?? Buffer.alloc(0)]))).toBe(true)
  })

  it('Node needs no glibc newer than the oldest supported one', async () => {
    expect(isAtMost(findNewestGlibcVersion([await fs.readFile(node)]))).toBe(true)
  })

  it('Node needs only glibc from the host, as the executable carries its other libraries', async () => {
    const elf = await fs.readFile(node)
    const asked = readVersionNeeds(elf, readElfSegments(elf)).map((need) => need.soname)
    const glibc = /^(ld-linux-[a-z0-9-]+\.so\.\d|lib(c|dl|m|pthread|rt)\.so\.\d)$/
    expect(asked.filter((soname) => !glibc.test(soname)).sort()).toEqual([...CARRIED_LIBRARIES].sort())
  })
})

describe('the build of the executable', () => {
  it.each([
    ['a regular expression', 'const is = (text: string) => /^größe$/.test(text)'],
    ['a raw template', 'const is = (text: string) => String.raw`größe` === text'],
  ])('refuses a non-ASCII letter in %s, which would never match, and accepts one in a string', async (_what, code) => {
    const work = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
    try {
      const entry = join(work, 'main.ts')
      const prepared = async (text: string) => {
        await fs.writeFile(entry, text)
        return prepareApplication(node, entry, work, { codeCache: false })
      }
      await expect(prepared(`${code}\nconsole.log(is('größe'))\n`)).rejects.toThrow(
        /main\.ts has "ö" .*: write it as \\u/,
      )
      await expect(prepared("console.log('größe', `größe`)\n")).resolves.toBeInstanceOf(Buffer)
    } finally {
      await fs.remove(work)
    }
  })

  it('produces the same bytes twice, without an ELF interpreter', async () => {
    const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
    try {
      const entry = join(workDirectory, 'main.ts')
      await fs.writeFile(entry, 'const answer: object = { status: "Success" }\nconsole.log(JSON.stringify(answer))\n')
      const arch = process.arch as Architecture
      const first = await buildProgram(arch, entry)
      expect(first.equals(await buildProgram(arch, entry))).toBe(true)
      const loads = readElfSegments(first).filter((segment) => segment.type === ELF_SEGMENT_TYPES.LOAD)
      expect(readElfSegments(first).some((segment) => segment.type === ELF_SEGMENT_TYPES.INTERP)).toBe(false)
      expect(loads.map((load) => load.address)).toEqual(loads.map((load) => load.address).toSorted((a, b) => a - b))
    } finally {
      await fs.remove(workDirectory)
    }
  })
})
