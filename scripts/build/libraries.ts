import { basename, join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { parseArchivePackage, provideDebianFile } from '../fetch/debian.ts'
import { GCC_LIBRARY_FILES } from '../fetch/pinned.ts'
import { UnavailableError } from '../fetch/unavailable.ts'
import { findNewestGlibcVersion } from './needed.ts'
import { type Architecture, provideNodePackage } from './runtime.ts'

/** Node needs them, and minimal hosts lack them. */
export const CARRIED_LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1'] as const

export interface CarriedLibrary {
  soname: (typeof CARRIED_LIBRARIES)[number]
  bytes: Buffer
}

export interface DebianLibrary extends CarriedLibrary {
  /** The package it is of. */
  origin: { name: string; version: string }
}

/**
 * The libraries that an executable carries: Debian's, or the building machine's own where those are not available; then it says
 * so, and which glibc the executable needs for it.
 * @throws {UnavailableError} for another processor than the machine's
 */
export async function provideLibraries(arch: Architecture, say: (text: string) => void): Promise<CarriedLibrary[]> {
  try {
    return provideDebianLibraries(arch)
  } catch (error) {
    if (!(error instanceof UnavailableError) || arch !== process.arch) throw error
    const { libraries, paths, glibc } = await readOwnLibraries(arch)
    say(`The executable carries this machine's own libraries: ${paths.join(', ')}.`)
    say(`Debian's are not available: ${error.message}.`)
    say(`The executable therefore needs glibc ${glibc} or newer; with Debian's libraries it needs glibc 2.28.`)
    return libraries
  }
}

/** Debian's libraries, for either processor. @throws {UnavailableError} */
export function provideDebianLibraries(arch: Architecture): DebianLibrary[] {
  return CARRIED_LIBRARIES.map((soname) => {
    const pinned = GCC_LIBRARY_FILES[arch][soname]
    return { soname, bytes: fs.readFileSync(provideDebianFile(pinned)), origin: parseArchivePackage(pinned.archive) }
  })
}

/** Those that Node itself has loaded here. */
async function readOwnLibraries(arch: Architecture) {
  const node = join(await provideNodePackage(arch), 'bin/node')
  const { stdout } = await execa(node, ['-p', 'fs.readFileSync("/proc/self/maps", "utf8")'])
  const mapped = stdout.match(/\/.*$/gm) ?? []
  const paths = CARRIED_LIBRARIES.map((soname) => {
    const path = mapped.find((path) => basename(path).startsWith(soname))
    if (path === undefined) throw new Error(`${node} runs without ${soname}: drop it from the carried libraries`)
    return path
  })
  const libraries = CARRIED_LIBRARIES.map((soname, n) => ({ soname, bytes: fs.readFileSync(paths[n] ?? '') }))
  const glibc = findNewestGlibcVersion([fs.readFileSync(node), ...libraries.map(({ bytes }) => bytes)])
  return { libraries, paths, glibc }
}
