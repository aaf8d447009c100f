import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { Hierarchy } from './cgroups.ts'

// The directories that a node's programs write to for any configuration: the kubelet's pod logs, install.sh's configuration, …
const WRITTEN_TO = ['/etc', '/var/lib', '/var/log', '/usr/libexec', '/usr/local']

// What is there of a kubelet's and a modekeep's that this machine has is not for this run.
const EMPTY = ['/var/lib/kubelet', '/var/lib/modekeep', '/var/log/modekeep', '/etc/modekeep']

// The kubelet sets these for the whole machine unless they are so already.
const KUBELETS_SETTINGS: Readonly<Record<string, number>> = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
}

const mount = (...args: string[]) => execFileSync('mount', args, { stdio: ['ignore', 'ignore', 'inherit'] })

/**
 * Makes this process's namespaces a separate machine: files written to the usual places go to `directory`, an
 * ext4 file system in a file without a name, which the kernel frees with the last process here.
 */
export function makeOwnPlace(directory: string, cgroups: readonly Hierarchy[], busybox: string): void {
  mount('-t', 'proc', 'proc', '/proc')
  mountDisk(directory)
  for (const path of WRITTEN_TO.filter((place) => fs.existsSync(place))) {
    const [upper, work] = ['upper', 'work'].map((name) => `${directory}/overlay${path}/${name}`)
    for (const part of [upper, work]) fs.mkdirSync(part as string, { recursive: true })
    mount('-t', 'overlay', '-o', `lowerdir=${path},upperdir=${upper},workdir=${work}`, 'overlay', path)
  }
  mount('-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs', '/run')
  for (const path of EMPTY) {
    fs.mkdirSync(path, { recursive: true })
    fs.mkdirSync(`${directory}${path}`, { recursive: true })
    mount('--bind', `${directory}${path}`, path)
  }
  for (const [name, value] of Object.entries(KUBELETS_SETTINGS)) {
    if (Number(fs.readFileSync(`/proc/sys/${name}`, 'utf8')) === value) continue
    const file = `${directory}/${name.replaceAll('/', '-')}`
    fs.writeFileSync(file, `${value}\n`)
    mount('--bind', file, `/proc/sys/${name}`)
  }
  mountWholeProc(directory)
  mountCgroups(cgroups)
  // As an init system leaves it. Last, so that what was bound above is no peer of where it came from.
  mount('--make-rshared', '/')
  execFileSync(busybox, ['ip', 'link', 'set', 'lo', 'up'])
}

/** A user namespace may mount proc only where one of the node's is visible without anything mounted on it. */
export function mountWholeProc(directory: string): void {
  const whole = `${directory}/proc`
  fs.mkdirSync(whole)
  mount('-t', 'proc', 'proc', whole)
}

/**
 * Puts the programs of a suite of Debian over the machine's, with the C library that they were linked against: programs of an
 * older suite run with a newer one. Earlier mounts below /usr are hidden.
 * @param root has `usr`
 * @param directory gets what is written below /usr; undefined: nothing can be written
 */
export function layOver(root: string, directory?: string): void {
  const lower = `lowerdir=${root}/usr:/usr`
  const [upper, work] = ['upper', 'work'].map((name) => `${directory}/usr-${name}`)
  if (directory !== undefined) for (const part of [upper, work]) fs.mkdirSync(part as string, { recursive: true })
  const options = directory === undefined ? `ro,${lower}` : `${lower},upperdir=${upper},workdir=${work}`
  mount('-t', 'overlay', '-o', options, 'overlay', '/usr')
}

function mountDisk(directory: string): void {
  const file = `${directory}.ext4`
  execFileSync('truncate', ['-s', '8G', file])
  execFileSync('mkfs.ext4', ['-q', '-N', '1000000', '-E', 'lazy_itable_init=1,lazy_journal_init=1', file])
  fs.mkdirSync(directory)
  mount('-o', 'loop,noatime', file, directory)
  fs.unlinkSync(file)
}

function mountCgroups(all: readonly Hierarchy[]): void {
  execFileSync('umount', ['--recursive', '--lazy', '/sys/fs/cgroup'])
  if (all.some(({ version }) => version === 1)) mount('-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs', '/sys/fs/cgroup')
  for (const { version, mountPoint, options } of all) {
    fs.mkdirSync(mountPoint, { recursive: true })
    if (version === 1) mount('-t', 'cgroup', '-o', named(options), 'cgroup', mountPoint)
    else {
      mount('-t', 'cgroup2', 'cgroup2', mountPoint)
      const offered = fs.readFileSync(`${mountPoint}/cgroup.controllers`, 'utf8').trim().split(/\s+/).filter(Boolean)
      fs.writeFileSync(`${mountPoint}/cgroup.subtree_control`, offered.map((name) => `+${name}`).join(' '))
    }
  }
}

const named = (options: string) => (options.startsWith('name=') ? `none,${options}` : options)
