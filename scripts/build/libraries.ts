import { basename, join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { debianFile, packageOf } from '../fetch/debian.ts'
import { GCC_LIBRARIES } from '../fetch/pinned.ts'
import { Unavailable } from '../fetch/unavailable.ts'
import { newestGlibc } from './needed.ts'
import { type Architecture, nodePackage } from './runtime.ts'

/** Node needs them, and minimal hosts lack them. */
export const LIBRARIES = ['libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1'] as const

export interface Library {
  soname: (typeof LIBRARIES)[number]
  bytes: Buffer
}

export interface DebianLibrary extends Library {
  /** The package it is of. */
  origin: { name: string; version: string }
}

/**
 * The libraries that an executable carries: Debian's, or the building machine's own where those are not available; then it says
 * so, and which glibc the executable needs for it.
 * @throws {Unavailable} for another processor than the machine's
 */
export async function librariesFor(arch: Architecture, say: (text: string) => void): Promise<Library[]> {
  try {
    return debianLibraries(arch)
  } catch (error) {
    if (!(error instanceof Unavailable) || arch !== process.arch) throw error
    const { libraries, paths, glibc } = await ownLibraries(arch)
    say(`The executable carries this machine's own libraries: ${paths.join(', ')}.`)
    say(`Debian's are not available: ${error.message}.`)
    say(`The executable therefore needs glibc ${glibc} or newer; with Debian's libraries it needs glibc 2.28.`)
    return libraries
  }
}

/** Debian's libraries, for either processor. @throws {Unavailable} */
export function debianLibraries(arch: Architecture): DebianLibrary[] {
  return LIBRARIES.map((soname) => {
    const pinned = GCC_LIBRARIES[arch][soname]
    return { soname, bytes: fs.readFileSync(debianFile(pinned)), origin: packageOf(pinned.archive) }
  })
}

/** Those that Node itself has loaded here. */
async function ownLibraries(arch: Architecture) {
  const node = join(await nodePackage(arch), 'bin/node')
  const { stdout } = await execa(node, ['-p', 'fs.readFileSync("/proc/self/maps", "utf8")'])
  const mapped = stdout.match(/\/.*$/gm) ?? []
  const paths = LIBRARIES.map((soname) => {
    const path = mapped.find((path) => basename(path).startsWith(soname))
    if (path === undefined) throw new Error(`${node} runs without ${soname}: drop it from the carried libraries`)
    return path
  })
  const libraries = LIBRARIES.map((soname, n) => ({ soname, bytes: fs.readFileSync(paths[n] ?? '') }))
  const glibc = newestGlibc([fs.readFileSync(node), ...libraries.map(({ bytes }) => bytes)])
  return { libraries, paths, glibc }
}
