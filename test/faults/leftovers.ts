import * as fs from 'node:fs'
import { listLeftLoopDevices } from '../helpers/disks.ts'
import type { NodeDirectory } from '../helpers/node-directory.ts'

/** Kept for good, or made anew by the next call that needs it. */
const LASTING = new Set([
  ...['boot', 'boot.new', 'growth', 'reservations.lock', 'loop.lock', 'sweep.lock'],
  ...['mounts', 'nri', 'ownership', 'publications', 'reservations'],
])
const TOP = new Set(['config.json', 'image', 'images', 'log', 'pods', 'state', 'volumes'])

/** Everything that calls could have left of the pods' volumes: processes, mounts, records, locks, directories, devices. */
export function leftovers(node: NodeDirectory, pods: readonly string[], volumes: readonly string[]): string[] {
  const below = (path: string) => namesIn(path).map((name) => `${path.slice(node.top.length)}/${name}`)
  return [
    ...processesOf(node.top).map((line) => `process ${line}`),
    ...listLeftLoopDevices(node.top).map((line) => `loop device ${line}`),
    ...pods.flatMap((pod) => node.layers(pod).map(({ root }) => `mount of ${root}`)),
    ...pods.flatMap((pod) => below(node.podDirectory(pod))),
    ...namesIn(node.state).filter((name) => !LASTING.has(name)),
    ...below(`${node.state}/mounts`),
    ...below(`${node.state}/nri`),
    ...below(`${node.state}/reservations`),
    ...below(`${node.state}/ownership`).filter((volume) => !isJournalAlone(namesIn(node.top + volume))),
    ...namesIn(`${node.top}/pods`).filter((name) => !pods.includes(name)),
    ...namesIn(node.volumes).filter((name) => !volumes.includes(name)),
    ...namesIn(node.top).filter((name) => !TOP.has(name)),
  ]
}

/** What a volume was before its first walk is kept, and beside it the file of its lock. */
function isJournalAlone(names: readonly string[]): boolean {
  return names.includes('journal.db') && names.every((name) => name === 'journal.db' || name === 'lock')
}

function namesIn(directory: string): string[] {
  return fs.existsSync(directory) ? fs.readdirSync(directory) : []
}

/** Command lines of processes that name a directory of the node. */
export function processesOf(top: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(commandLine)
    .filter((line) => line.includes(top))
}

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
