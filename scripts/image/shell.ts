import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { TarEntry } from '../../src/cli/output/tar.ts'
import { ELF_SEGMENT_TYPES, readElfSegments } from '../build/elf.ts'

const SHELL_ROOT_DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'sys']

/**
 * A root directory with a static busybox and its links, and nothing else that could be run.
 * @param wanted its applets that the image needs; without, all that it has
 * @throws {Error} if the busybox is not static, or has no such applet
 */
export function createShellRoot(busybox: string, wanted?: readonly string[]): TarEntry[] {
  const bytes = fs.readFileSync(busybox)
  if (readElfSegments(bytes).some(({ type }) => type === ELF_SEGMENT_TYPES.INTERP))
    throw new Error(`${busybox} is not static: the image has no libraries for it`)
  const applets = isOwnProcessorElf(bytes)
    ? execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n')
    : undefined
  if (applets === undefined && wanted === undefined)
    throw new Error(`${busybox} is for another processor: name applets`)
  // One that cannot be run has their names, each between two zeros.
  const has = (name: string) => applets?.includes(name) ?? bytes.includes(`\0${name}\0`)
  const missing = wanted?.filter((name) => !has(name)) ?? []
  if (missing.length > 0) throw new Error(`${busybox} has no ${missing.join(', ')}`)
  const links = [...(wanted ?? applets ?? [])].filter((name) => name !== 'busybox').sort()
  return [
    ...SHELL_ROOT_DIRECTORIES.map((path) => ({ path, directory: true as const, mode: 0o755 })),
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'bin/busybox', bytes, mode: 0o755 },
    ...links.map((name) => ({ path: `bin/${name}`, link: 'busybox' })),
    { path: 'etc/passwd', bytes: Buffer.from('root:x:0:0:root:/:/bin/sh\n'), mode: 0o644 },
    { path: 'etc/group', bytes: Buffer.from('root:x:0:\n'), mode: 0o644 },
  ]
}

// Where an ELF header names its processor.
const isOwnProcessorElf = (bytes: Buffer) =>
  bytes.readUInt16LE(ELF_MACHINE_OFFSET) === fs.readFileSync(process.execPath).readUInt16LE(ELF_MACHINE_OFFSET)
const ELF_MACHINE_OFFSET = 18
