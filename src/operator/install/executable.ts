import { basename, dirname } from 'node:path'
import { FILE_TYPE, REGULAR } from '../../host/host.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import type { Job } from './job.ts'

/** What is to be installed. */
export interface Executable {
  path: string
  /** Its SHA-256, and what asks for that; undefined where nothing does. */
  wanted: { sum: string; by: string } | undefined
}

/** @throws {Refusal} where there is none, or another than was asked for */
export function findExecutable({ admin: { files }, command, executable }: Job<InstallCommand>): Executable {
  const path = command.binary ?? executable
  if (path === undefined) {
    throw new Refusal(['this runs from its sources: there is no executable', 'name one with --binary FILE'])
  }
  if (!isReadableFile(files, path) || files.head(path, 1)?.length === 0) {
    throw new Refusal(`${path} is not a readable, non-empty file`)
  }
  const { sha256, config } = command
  const wanted = sha256 === undefined ? beside(files, path) : { sum: sha256, by: '--sha256' }
  const found = { path, wanted }
  requireSum(files, found, path)
  if (config !== undefined && !isReadableFile(files, config)) {
    throw new Refusal(`--config: ${config} is not a readable file`)
  }
  return found
}

function isReadableFile(files: NodeFiles, path: string): boolean {
  const { mode = 0 } = files.stat(path) ?? {}
  return (mode & FILE_TYPE) === REGULAR && files.head(path, 1) !== undefined
}

/** A release has SHA256SUMS beside its files, as sha256sum writes it: the sum, a blank, a blank or a star, the name. */
function beside(files: NodeFiles, path: string): Executable['wanted'] {
  const sums = `${dirname(path)}/SHA256SUMS`
  const text = files.read(sums)
  if (text === undefined) return undefined
  const name = basename(path)
  const line = text.split('\n').find((line) => /^[0-9a-fA-F]{64} [ *]/.test(line) && line.slice(66) === name)
  if (line !== undefined) return { sum: line.slice(0, 64).toLowerCase(), by: sums }
  const way = 'name the sum with --sha256 SUM, or take SHA256SUMS away if it is about other files'
  throw new Refusal([`${sums} has no sum of ${name}`, way])
}

/** @param copy the executable itself, or the copy that gets installed: what was compared could be exchanged before it is copied */
export function requireSum(files: NodeFiles, { path, wanted }: Executable, copy: string): void {
  if (wanted === undefined) return
  const found = files.sum(copy)
  if (found === wanted.sum) return
  const fault = `${path} is not the file that ${wanted.by} asks for: fetch it again`
  throw new Refusal([fault, `expected ${wanted.sum}`, `found    ${found}`])
}

/** With a sum the other file itself is asked for it. */
export function hasItsBytes(files: NodeFiles, { path, wanted }: Executable, other: string): boolean {
  return wanted === undefined ? files.isSame(path, other) : files.sum(other) === wanted.sum
}

const MACHINE = { offset: 18, end: 20 }

/**
 * Nothing is tried that the kernel would not run: a chroot(1) of a shell's would run its bytes as commands.
 * @param copy what is tried
 * @throws {Refusal} for what is neither a script nor an ELF file of this processor
 */
export function requireProgram(files: NodeFiles, path: string, copy: string): void {
  const head = files.head(copy, MACHINE.end)?.toString('latin1') ?? ''
  if (head.startsWith('#!')) return
  if (!head.startsWith('\x7fELF')) throw new Refusal(`${path} is no executable: it has neither an ELF header nor #!`)
  const own = files.head('/proc/self/exe', MACHINE.end)?.toString('latin1').slice(MACHINE.offset)
  if (own !== undefined && own !== head.slice(MACHINE.offset)) {
    throw new Refusal(`${path} is built for another processor than this one`)
  }
}
