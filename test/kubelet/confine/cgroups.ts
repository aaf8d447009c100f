import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { type MountRow, parseMountinfo } from '../../../src/kernel/mount-table/mountinfo.ts'

/** Of the kubelet's own run. */
export const NAME = 'modekeep-kubelet-test'
const LEAF = 'processes'

/** A control group hierarchy: what `mount` needs to mount it again, and where the run's own group in it is. */
export interface Hierarchy {
  version: 1 | 2
  mountPoint: string
  /** Controllers of version 1, as mount options. */
  options: string
  group: string
}

/**
 * Where the run's own control groups are, or are to be: below those of this process, so that their limits hold; with
 * version 2 alone below the root, since only there may a group have processes and controlled children.
 */
export function hierarchies(name = NAME): Hierarchy[] {
  const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')).filter(
    ({ fsType, root }) => root === '/' && (fsType === 'cgroup' || fsType === 'cgroup2'),
  )
  const pure = rows.every(({ fsType }) => fsType === 'cgroup2')
  return rows.map((row) => {
    const version = row.fsType === 'cgroup' ? 1 : 2
    const options = version === 1 ? controllers(row).join() : ''
    const parent = pure ? '' : ownGroup(options)
    return { version, mountPoint: row.mountPoint, options, group: `${row.mountPoint}${parent}/${name}` }
  })
}

const FLAGS = new Set(['rw', 'ro', 'xattr', 'release_agent', 'clone_children', 'none'])
const controllers = ({ superOptions }: MountRow) =>
  superOptions.filter((option) => !FLAGS.has(option.replace(/=.*/, '')))

function ownGroup(options: string): string {
  for (const line of fs.readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, names = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (names === options) return path === '/' ? '' : path
  }
  return ''
}

/**
 * Makes the groups. Version 2 wants processes in a leaf, but the group above it as the root of the run's namespace: so a
 * process enters the groups, then the namespace, then the leaves. Returns the files that take the id of a process.
 */
export function makeGroups(all: readonly Hierarchy[]): { groups: string[]; leaves: string[] } {
  for (const { version, group } of all) {
    fs.mkdirSync(group)
    if (version === 2) fs.mkdirSync(`${group}/${LEAF}`)
    else for (const file of ['cpuset.cpus', 'cpuset.mems']) inherit(group, file)
  }
  const second = all.filter(({ version }) => version === 2)
  return {
    groups: all.map(({ group }) => `${group}/cgroup.procs`),
    leaves: second.map(({ group }) => `${group}/${LEAF}/cgroup.procs`),
  }
}

// A new cpuset of version 1 is empty, and nothing can run in it.
function inherit(group: string, file: string): void {
  if (fs.existsSync(`${group}/${file}`)) fs.writeFileSync(`${group}/${file}`, fs.readFileSync(`${group}/../${file}`))
}

/** Removes the groups of a run whose processes are gone, or are going. */
export async function removeGroups(all: readonly Hierarchy[]): Promise<void> {
  for (const { group } of all) {
    if (!fs.existsSync(group)) continue
    const deepestFirst = execFileSync('find', [group, '-depth', '-type', 'd']).toString().trim().split('\n')
    for (const directory of deepestFirst) {
      for (let tries = 0; fs.existsSync(directory); tries++) {
        try {
          fs.rmdirSync(directory)
        } catch (error) {
          if (tries === 100) throw error
          await new Promise((done) => setTimeout(done, 100))
        }
      }
    }
  }
}
