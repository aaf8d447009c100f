import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { applyIdMap } from '../../src/fsgroup/map-group.ts'
import type { Handle } from '../../src/kernel/host.ts'
import { createGroupSwapMap } from '../../src/kernel/id-map.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { Session } from '../../src/state/session.ts'
import { cannotMountWith } from '../helpers/needs.ts'

export const session: Session = { host: linuxHost, config: DEFAULT_CONFIG, note: () => {}, warn: () => {} }

/** `size`: MiB that mkfs asks for at least, of a sparse file. */
const IMAGES: Readonly<Record<string, { size: number; mkfs: readonly string[] }>> = {
  ext4: { size: 64, mkfs: ['mkfs.ext4', '-q', '-F'] },
  xfs: { size: 300, mkfs: ['mkfs.xfs', '-q'] },
  btrfs: { size: 128, mkfs: ['mkfs.btrfs', '-q'] },
}

/** Why a file system cannot be mounted here, for a title; empty where it can. */
export function cannotMount(fsType: string): string {
  const [program = ''] = IMAGES[fsType]?.mkfs ?? []
  return cannotRun(program)
}

/** The same for what needs a program, '' for none. */
export function cannotRun(program: string): string {
  const why = cannotMountWith(...[program].filter(Boolean))
  return why && ` (skipped: ${why})`
}

/** An empty directory of the test that is running, whose mounts go with it. */
export function scratch(): string {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-idmap-`)
  // Processes of other users go through it.
  fs.chmodSync(top, 0o755)
  onTestFinished(() => {
    // A FUSE daemon ends, and lets the directory go that it shows, a moment after its mount.
    // What lies on another may be the older of the two.
    for (const point of mountedBelow(top).sort().reverse()) execFileSync('umount', ['--lazy', point])
    fs.rmSync(top, { recursive: true })
  })
  return top
}

function mountedBelow(top: string): string[] {
  const rows = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return rows.map((row) => row.split(' ')[4] ?? '').filter((point) => point.startsWith(`${top}/`))
}

/** Mounts a new file system at `top`/fs. */
export function mountNew(top: string, fsType: string): string {
  const point = `${top}/fs`
  fs.mkdirSync(point)
  const image = IMAGES[fsType]
  if (image === undefined) execFileSync('mount', ['-t', fsType, 'test', point])
  else {
    const [program = '', ...options] = image.mkfs
    execFileSync('truncate', ['-s', `${image.size}M`, `${top}/image`])
    execFileSync(program, [...options, `${top}/image`])
    execFileSync('mount', ['-o', 'loop', `${top}/image`, point])
  }
  return point
}

/** Mounts `source` at `target` as a pod of group `to` gets it; `from` is the group on disk. */
export function mountMapped(source: string, target: string, from: number, to: number): void {
  fs.mkdirSync(target, { recursive: true })
  withMapped(source, from, to, (tree) => {
    const point = linuxHost.inodes.openTrusted(target)
    linuxHost.mounts.attach(tree, point)
    linuxHost.inodes.close(point)
  })
}

/** Maps a detached mount of a directory; without `use` it is thrown away. */
export function withMapped(source: string, from: number, to: number, use: (tree: Handle) => void = () => {}): void {
  const { inodes, mounts } = linuxHost
  const opened = inodes.openLinkFree(source)
  const tree = mounts.cloneTree(opened)
  try {
    mounts.setFlags(tree, { set: 0, clear: 0 })
    applyIdMap(session, tree, opened, createGroupSwapMap(from, to))
    use(tree)
  } finally {
    inodes.close(tree)
    inodes.close(opened)
  }
}

/** Runs a shell script as user 1000 with these groups; the last line that it wrote. */
export function as(user: { group: number; also?: number }, script: string): string {
  const groups = user.also === undefined ? ['--clear-groups'] : ['--groups', String(user.also)]
  const args = ['--reuid', '1000', '--regid', String(user.group), ...groups, 'sh', '-c', `(${script}) 2>&1 || true`]
  return execFileSync('setpriv', args, { encoding: 'utf8' }).trim()
}
