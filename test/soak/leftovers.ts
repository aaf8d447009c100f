import * as fs from 'node:fs'
import { mountsBelow, type SoakNode } from './node.ts'
import { Odd, same } from './odd.ts'
import { descriptorsOf, type Watcher } from './watcher.ts'

// Empty files that say when records were swept, and that calls take turns at.
const STAYS = new Set(['boot', 'sweep.lock', 'reservations.lock'])
// What a program has open for a moment: a directory it reads, the table of mounts.
const MOMENTARY = 4

/** The idle state, for a later comparison. */
export interface Quiet {
  mounts: string[]
  processes: string[]
  loops: string[]
  /** Paths in the state directory that speak of some mount or volume. */
  records: string[]
  descriptors: string[]
  /** Those of heal --watch. */
  watchers: string[]
}

export function look(node: SoakNode, watcher: Watcher): Quiet {
  return {
    mounts: mountsBelow(node.top),
    processes: processes(watcher),
    loops: loops(node.top),
    records: records(node.state),
    descriptors: descriptorsOf('self'),
    watchers: watcher.use().descriptors,
  }
}

/** @throws {Odd} naming what there is more of than before */
export function nothingMore(now: Quiet, before: Quiet): void {
  for (const what of ['mounts', 'processes', 'loops', 'records'] as const) {
    same(
      `${what} left`,
      now[what].filter((one) => !before[what].includes(one)),
      [],
    )
  }
  for (const what of ['descriptors', 'watchers'] as const) {
    const [open, then] = [now[what], before[what]]
    if (open.length <= then.length + MOMENTARY) continue
    throw new Odd(`${what}: ${open.length} are open, were ${then.length}: ${open.join(' ')}`)
  }
}

/** All of the run's own process namespace but its first one, this one and the watcher. */
function processes(watcher: Watcher): string[] {
  const ours = new Set([1, process.pid, watcher.pid])
  return fs.readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || ours.has(Number(name))) return []
    try {
      const words = fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return `${name} ${words || fs.readFileSync(`/proc/${name}/comm`, 'utf8')}`.trim()
    } catch {
      return []
    }
  })
}

/** Loop devices that show a file of the node's. */
function loops(top: string): string[] {
  return fs.readdirSync('/sys/block').flatMap((name) => {
    try {
      const file = fs.readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim()
      return file.startsWith(`${top}/`) ? `${name} ${file}` : []
    } catch {
      return []
    }
  })
}

function records(state: string): string[] {
  const paths = below(state).map((path) => path.slice(state.length + 1))
  return paths.filter((path) => path.includes('/') && !STAYS.has(path))
}

/** What the state directory takes of its disk, in bytes. */
export function sizeOf(state: string): number {
  return [state, ...below(state)].reduce((sum, path) => {
    return sum + (fs.lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512
  }, 0)
}

/** Every path below a directory in which calls are at work. What they mount in the staging directory is not entered. */
function below(directory: string): string[] {
  return list(directory).flatMap((entry) => {
    const path = `${directory}/${entry.name}`
    return entry.isDirectory() && !directory.endsWith('/staging') ? [path, ...below(path)] : [path]
  })
}

function list(directory: string): fs.Dirent[] {
  try {
    return fs.readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
