// A system below a directory, a fake driver and a fake /proc: the installer runs on it.

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, it, onTestFinished } from 'vitest'
import { parseOperatorCommand } from '../../src/cli/commands/arguments.ts'
import { installModekeep as installOn, uninstallModekeep as uninstallFrom } from '../../src/cli/install/index.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { linuxAdministration } from '../../src/kernel/linux/administration.ts'
import { addSkipReason } from '../helpers/needs.ts'

export const checkout = join(import.meta.dirname, '../..')
export const script = join(checkout, 'install.sh')
export const BINARY = join(checkout, 'dist/modekeep')
export const pluginDir = '/var/lib/kubelet/volumeplugins'

export const has = (command: string) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
export const shells: string[][] = has('busybox') ? [['sh'], ['busybox', 'sh']] : [['sh']]

const isRoot = process.getuid?.() === 0

/** Whether a parent of this process lives in another mount namespace. Process 1 itself may not be readable. */
function inOwnMountNamespace() {
  const own = readlinkSync('/proc/self/ns/mnt')
  for (let pid = process.ppid; pid > 0; ) {
    try {
      if (readlinkSync(`/proc/${pid}/ns/mnt`) !== own) return true
      pid = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    } catch {
      return false
    }
  }
  return false
}

/** Why a test that needs something of this machine cannot run here; empty when it can. */
export const missing = {
  root: isRoot ? '' : 'needs root; run "sudo npm test"',
  mounts: isRoot && inOwnMountNamespace() ? '' : 'needs root in a private mount namespace; run "sudo npm test"',
  strace: has('strace') ? '' : 'needs strace: apt-get install strace',
  shellcheck: has('shellcheck') ? '' : 'needs shellcheck: apt-get install shellcheck',
  setpriv: has('setpriv') && isRoot ? '' : 'needs root and setpriv: apt-get install util-linux; run "sudo npm test"',
  dist: existsSync(BINARY) ? '' : 'needs dist/modekeep; run "npm run build"',
  busybox: has('busybox') && isRoot ? '' : 'needs root and busybox: apt-get install busybox; run "sudo npm test"',
}

/** What needs something of this machine. Where that is missing it is skipped, and its title says why. */
export function needing(...reasons: string[]) {
  const reason = reasons.filter(Boolean).join('; ')
  const isMissing = reason !== ''
  const told = (title: string) => addSkipReason(title, reason)
  return {
    isMissing,
    titled: told,
    describe: (title: string, tests: () => void) => describe.skipIf(isMissing)(told(title), tests),
    it: (title: string, test: () => void | Promise<void>) => it.skipIf(isMissing)(told(title), test),
  }
}

export type World = ReturnType<typeof makeWorld>

export function makeWorld() {
  const base = mkdtempSync(join(tmpdir(), 'modekeep-install-'))
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
  return makeWorldIn(base)
}

/** The same in an empty directory of the caller's. */
export function makeWorldIn(base: string) {
  chmodSync(base, 0o755)
  const root = join(base, 'root')
  const plugins = join(root, pluginDir)
  mkdirSync(root)
  return {
    base,
    root,
    plugins,
    driverDir: join(plugins, 'modekeep~fs'),
    driver: join(plugins, 'modekeep~fs/fs'),
    link: join(root, 'usr/local/sbin/modekeep'),
    proc: join(base, 'proc'),
  }
}

/** A driver with its reply at the very end: a truncated copy gives none. */
export function writeDriver(world: World, version: string, init = `{"status":"Success","version":"${version}"}`) {
  const file = join(world.base, `driver-${version}`)
  writeFileSync(file, `#!/bin/sh\n${`# ${'x'.repeat(1000)}\n`.repeat(100)}printf '%s\\n' '${init}'\n`, { mode: 0o755 })
  return file
}

/** A directory for PATH in which a command is what the script says. */
export function commandThat(world: World, name: string, script: string): Record<string, string> {
  const directory = join(world.base, `instead-of-${name}`)
  mkdirSync(directory)
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return { PATH: `${directory}:${process.env.PATH}` }
}

export interface Run {
  /** Runs install.sh; without, the verb itself. */
  shell?: string[]
  env?: Record<string, string>
  prefix?: string[]
}

/** Runs install.sh as it is, or what it hands over to, and returns its exit code and both outputs. */
export async function run(args: string[], { shell, env = {}, prefix = [] }: Run = {}) {
  const verb = args.includes('--uninstall') ? 'uninstall' : 'install'
  const program = shell ? [...shell, script, ...args] : [BINARY, verb, ...args.filter((word) => word !== '--uninstall')]
  const [file = '', ...rest] = [...prefix, ...program]
  const { exitCode, stdout, stderr } = await execa(file, rest, { reject: false, env })
  return { exitCode, stdout, stderr }
}

export const install = (world: World, binary: string, options: Run = {}, ...more: string[]) =>
  run(['--root', world.root, '--plugin-dir', pluginDir, '--binary', binary, ...more], options)

export const uninstall = (world: World, options: Run = {}, ...more: string[]) =>
  run(['--root', world.root, '--plugin-dir', pluginDir, '--uninstall', ...more], options)

/** Runs the installer in this process, on another Administration if need be; its output as the executable would have it. */
export async function runHere(argv: string[], admin = linuxAdministration) {
  const command = parseOperatorCommand(argv, () => '/')
  if (command.verb !== 'install' && command.verb !== 'uninstall') throw new Error(`${command.verb} installs nothing`)
  const said = { stdout: '', stderr: '' }
  const job = {
    admin,
    executable: undefined,
    report(step: string, text: string) {
      said.stdout += `${step.padEnd(11)} ${text}\n`
    },
    warn(text: string) {
      said.stderr += `warning: ${text}\n`
    },
    stop: new AbortController().signal,
  }
  try {
    if (command.verb === 'install') await installOn({ ...job, command })
    else await uninstallFrom({ ...job, command })
    return { exitCode: 0, ...said }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    said.stderr += `error: ${error.faults.map((fault) => renderFault(fault)).join('\n       ')}\n`
    return { exitCode: 1, ...said }
  }
}

/** The node's own, with some of what is done to its files done otherwise. */
export function otherwise(files: Partial<typeof linuxAdministration.files>): typeof linuxAdministration {
  return { ...linuxAdministration, files: { ...linuxAdministration.files, ...files } }
}

/** A directory as a release has it: install.sh, and the executable beside it. */
export function unpacked(world: World): string {
  const directory = join(world.base, 'release')
  mkdirSync(directory)
  writeFileSync(join(directory, 'install.sh'), readFileSync(script), { mode: 0o755 })
  symlinkSync(BINARY, join(directory, 'modekeep'))
  return directory
}

/** The status of a process of root's that may mount. */
export const ROOTS = 'Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n'

/** A proc directory with one process for each list of arguments, the first as process 101. */
export function fakeProc(world: World, ...processes: string[][]) {
  mkdirSync(join(world.proc, 'self'), { recursive: true })
  processes.forEach((argv, index) => {
    const directory = join(world.proc, String(101 + index))
    mkdirSync(directory)
    writeFileSync(join(directory, 'cmdline'), argv.map((word) => `${word}\0`).join(''))
    writeFileSync(join(directory, 'status'), ROOTS)
    symlinkSync('/bin/sh', join(directory, 'exe'))
  })
}

export function put(world: World, path: string, text: string) {
  const file = join(world.root, path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
}

/** Everything about every entry below a directory that a change would show in. */
export const listing = (directory: string) =>
  ['', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })].sort().map((name) => {
    const { ino, mode, uid, gid, size, mtimeMs, ctimeMs } = lstatSync(join(directory, name))
    return { name, ino, mode, uid, gid, size, mtimeMs, ctimeMs }
  })

export const dotFiles = (world: World) =>
  [
    world.plugins,
    world.driverDir,
    join(world.root, 'var/lib/modekeep'),
    join(world.link, '..'),
    join(world.root, 'etc/modekeep'),
  ]
    .filter((directory) => existsSync(directory))
    .flatMap((directory) => readdirSync(directory))
    .filter((name) => name.startsWith('.'))

export const sameBytes = (a: string, b: string) => readFileSync(a).equals(readFileSync(b))
export const permissions = (path: string) => lstatSync(path).mode & 0o7777

/** Until the test ends. */
export async function bindMount(target: string) {
  mkdirSync(target, { recursive: true })
  await execa('mount', ['--bind', target, target])
  onTestFinished(async () => {
    await execa('umount', [target])
  })
}

/** Where kubelet has a volume of modekeep's. */
export const podVolume = (world: World) => join(world.root, 'var/lib/kubelet/pods/0a1b/volumes/modekeep~fs/data')
