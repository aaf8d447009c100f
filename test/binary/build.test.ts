import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { prepareApplication } from '../../scripts/build/application.ts'
import { ELF_SEGMENT_TYPES, readElfSegments } from '../../scripts/build/elf.ts'
import { provideDebianLibraries, readGlibcVersion } from '../../scripts/build/libraries.ts'
import { readVersionNeeds } from '../../scripts/build/needed.ts'
import { buildProgram } from '../../scripts/build/program.ts'
import { ARCHITECTURES, type Architecture, provideNodePackage } from '../../scripts/build/runtime.ts'
import { provideDebianFile } from '../../scripts/fetch/debian.ts'
import { GLIBC_INTERPRETER_FILES } from '../../scripts/fetch/pinned.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'

const TRIPLETS = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const
const node = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`)
const carried = skipIfUnavailable(provideDebianLibraries)

describe.each(ARCHITECTURES)('the libraries that the executable for %s carries', (arch) => {
  it('are all that Node and they need, in all the versions that they need', async () => {
    const { libraries, interpreter } = carried(arch)
    const node = await fs.readFile(join(await provideNodePackage(arch), 'bin/node'))
    const provided = new Map([...libraries, interpreter].map(({ soname, bytes }) => [soname, bytes.toString('latin1')]))
    for (const elf of [node, ...libraries.map(({ bytes }) => bytes)]) {
      for (const { soname, versions } of readVersionNeeds(elf, readElfSegments(elf))) {
        const missing = versions.filter((version) => !provided.get(soname)?.includes(`\0${version}\0`))
        expect({ soname, missing }).toEqual({ soname, missing: [] })
      }
    }
  })

  it('have a C library of the version that the executable reports', () => {
    const { libraries, glibcVersion } = carried(arch)
    const libc = libraries.find(({ soname }) => soname === 'libc.so.6')
    expect(readGlibcVersion(libc?.bytes ?? Buffer.alloc(0))).toBe(glibcVersion)
  })

  it('have an ld.so that names no list and no directory of the node', () => {
    const { interpreter } = carried(arch)
    const original = fs.readFileSync(provideDebianFile(GLIBC_INTERPRETER_FILES[arch]))
    const paths = (elf: Buffer) =>
      elf
        .toString('latin1')
        .match(/(?<=\0)\/(?:etc\/ld\.so|(?:usr\/)?lib)[^\0]*(?=\0)/g)
        ?.filter((path) => !path.includes('ld-linux'))
    expect(new Set(paths(original))).toEqual(
      new Set([
        '/etc/ld.so.cache',
        '/etc/ld.so.preload',
        ...['/lib/', '/usr/lib/'].flatMap((top) => [top, `${top}${TRIPLETS[arch]}/`]),
      ]),
    )
    expect(paths(interpreter.bytes) ?? []).toEqual([])
    expect(interpreter.bytes.length).toBe(original.length)
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
