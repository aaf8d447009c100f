import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { parseArchivePackage, provideDebianFile } from '../fetch/debian.ts'
import { GCC_LIBRARY_FILES, GLIBC_INTERPRETER_FILES, GLIBC_LIBRARY_FILES, type PinnedFile } from '../fetch/pinned.ts'
import { UnavailableError } from '../fetch/unavailable.ts'
import { readElfSoname } from './elf.ts'
import { hideNodeLibraries } from './interpreter.ts'
import { type Architecture, provideNodePackage } from './runtime.ts'

/** Node needs them, and they need one another. */
export const CARRIED_LIBRARIES = [
  'libstdc++.so.6',
  'libgcc_s.so.1',
  'libatomic.so.1',
  'libc.so.6',
  'libm.so.6',
  'libpthread.so.0',
  'libdl.so.2',
] as const

/** The dynamic linker of glibc for each processor. */
const INTERPRETERS = {
  x64: 'ld-linux-x86-64.so.2',
  arm64: 'ld-linux-aarch64.so.1',
} as const satisfies Record<Architecture, string>

export interface CarriedLibrary {
  soname: string
  bytes: Buffer
}

/** What an executable carries, so that it needs no library of the node. */
export interface CarriedLibraries<Library = CarriedLibrary> {
  libraries: readonly Library[]
  interpreter: Library
  /** Debian's version of the C library, such as `2.36-9+deb12u14`. */
  glibcVersion: string
}

export interface DebianLibrary extends CarriedLibrary {
  /** The package it is of. */
  origin: { name: string; version: string }
}

/**
 * The libraries that an executable carries: Debian's, or the building machine's own where those are not available; then it says
 * so.
 * @throws {UnavailableError} for another processor than the machine's
 */
export async function provideLibraries(arch: Architecture, say: (text: string) => void): Promise<CarriedLibraries> {
  try {
    return provideDebianLibraries(arch)
  } catch (error) {
    if (!(error instanceof UnavailableError) || arch !== process.arch) throw error
    const own = await readOwnLibraries(arch)
    say(`The executable carries this machine's own libraries, with glibc ${own.glibcVersion}: ${own.paths.join(', ')}.`)
    say(`Debian's are not available: ${error.message}.`)
    return own
  }
}

/** Debian's libraries, for either processor. @throws {UnavailableError} */
export function provideDebianLibraries(arch: Architecture): CarriedLibraries<DebianLibrary> {
  const pinned: Readonly<Record<(typeof CARRIED_LIBRARIES)[number], PinnedFile>> = {
    ...GCC_LIBRARY_FILES[arch],
    ...GLIBC_LIBRARY_FILES[arch],
  }
  const interpreter = readDebianLibrary(INTERPRETERS[arch], GLIBC_INTERPRETER_FILES[arch])
  return {
    libraries: CARRIED_LIBRARIES.map((soname) => readDebianLibrary(soname, pinned[soname])),
    interpreter: { ...interpreter, bytes: hideNodeLibraries(interpreter.bytes) },
    glibcVersion: interpreter.origin.version,
  }
}

function readDebianLibrary(soname: string, pinned: PinnedFile): DebianLibrary {
  return { soname, bytes: fs.readFileSync(provideDebianFile(pinned)), origin: parseArchivePackage(pinned.archive) }
}

/** Those that Node itself has loaded here. */
async function readOwnLibraries(arch: Architecture): Promise<CarriedLibraries & { paths: string[] }> {
  const node = join(await provideNodePackage(arch), 'bin/node')
  const { stdout } = await execa(node, ['-p', 'fs.readFileSync("/proc/self/maps", "utf8")'])
  const mapped = new Set(stdout.match(/\/.*\.so\b.*$/gm))
  const bySoname = new Map(
    [...mapped].map((path) => {
      const bytes = fs.readFileSync(path)
      return [readElfSoname(bytes), { path, bytes }]
    }),
  )
  const find = (soname: string) => {
    const library = bySoname.get(soname)
    if (library === undefined) throw new Error(`${node} runs without ${soname}: drop it from the carried libraries`)
    return { soname, ...library }
  }
  const libraries = CARRIED_LIBRARIES.map(find)
  const interpreter = find(INTERPRETERS[arch])
  return {
    libraries,
    interpreter: { ...interpreter, bytes: hideNodeLibraries(interpreter.bytes) },
    glibcVersion: readGlibcVersion(find('libc.so.6').bytes),
    paths: [...libraries, interpreter].map(({ path }) => path),
  }
}

/** A C library prints its version, such as `GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.` */
export function readGlibcVersion(libc: Buffer): string {
  const [, distribution = '', release = ''] =
    /GNU C Library \(([^)]*)\) \w+ release version (\d+\.\d+)/.exec(libc.toString('latin1')) ?? []
  if (release === '') throw new Error('the C library does not contain its version')
  return /\d\S*$/.exec(distribution)?.[0] ?? release
}
