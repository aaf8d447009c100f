import { accessSync, constants, statSync } from 'node:fs'
import { HelperError } from '../helpers.ts'
import { packageOf } from './packages.ts'

/** Where the node's packages install programs. Fixed: nobody's environment decides what runs as root. */
export const SYSTEM_PATH: readonly string[] = [
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
  '/usr/local/sbin',
  '/usr/local/bin',
]

/** @throws {HelperError} naming the package that has it */
export function findProgram(program: string, path: readonly string[]): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(program)) throw new Error(`no bare name of a program: ${program}`)
  const found = path.map((directory) => `${directory}/${program}`).filter(isFile)
  const usable = found.find(isExecutable)
  if (usable !== undefined) return usable
  if (found[0] !== undefined) throw new HelperError(`${found[0]} is not executable: install its package again`)
  const name = packageOf(program)
  const way = name === undefined ? 'install it' : `install the package ${name}`
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
