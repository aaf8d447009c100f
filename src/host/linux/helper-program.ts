import { accessSync, constants, statSync } from 'node:fs'
import { HelperError } from '../helpers.ts'

/** Where the node's packages install programs. Fixed: nobody's environment decides what runs as root. */
export const SYSTEM_PATH: readonly string[] = [
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
  '/usr/local/sbin',
  '/usr/local/bin',
]

/** Program -> its package on Debian, and on distributions with RPM. */
const PACKAGES: Readonly<Record<string, readonly [debian: string, rpm: string]>> = {
  'mount.nfs': ['nfs-common', 'nfs-utils'],
  'mount.nfs4': ['nfs-common', 'nfs-utils'],
  'mount.cifs': ['cifs-utils', 'cifs-utils'],
  sshfs: ['sshfs', 'fuse-sshfs'],
  bindfs: ['bindfs', 'bindfs'],
  squashfuse: ['squashfuse', 'squashfuse'],
  fusermount3: ['fuse3', 'fuse3'],
}

/** @throws {HelperError} naming the package that has it */
export function findProgram(program: string, path: readonly string[]): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(program)) throw new Error(`no bare name of a program: ${program}`)
  const found = path.map((directory) => `${directory}/${program}`).filter(isFile)
  const usable = found.find(isExecutable)
  if (usable !== undefined) return usable
  if (found[0] !== undefined) throw new HelperError(`${found[0]} is not executable: install its package again`)
  const [debian, rpm] = Object.hasOwn(PACKAGES, program) ? (PACKAGES[program] ?? []) : []
  const packages = debian === rpm ? debian : `${debian} (Debian) or ${rpm} (RPM)`
  const way = debian === undefined ? 'install it' : `install the package ${packages}`
  throw new HelperError(`${program} is not on this node: ${way}; it is looked for in ${path.join(', ')}`)
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
