import { mkdirSync, readFileSync } from 'node:fs'

/** Below a node's cgroup2, where a group with controlled children may have no process of its own (cgroups(7)). */
const LEAF_GROUP = 'modekeep-fuse'

/**
 * The files that take a process out of whatever control groups it is in, into those of the node: a container runtime kills
 * all that is in its container's.
 * @param mountinfo as /proc/self/mountinfo has it: what a container's file system shows of its own groups may be there too
 * @param top where the node has its groups
 * @throws where a group cannot be made
 */
export function prepareNodeGroups(
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
  top = '/sys/fs/cgroup',
): string[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [left = '', right = ''] = line.split(' - ')
    const [, , , , mountPoint = ''] = left.split(' ')
    if (mountPoint !== top && !mountPoint.startsWith(`${top}/`)) return []
    const [type] = right.split(' ')
    if (type === 'cgroup') return [`${mountPoint}/cgroup.procs`]
    if (type !== 'cgroup2') return []
    mkdirSync(`${mountPoint}/${LEAF_GROUP}`, { recursive: true })
    return [`${mountPoint}/${LEAF_GROUP}/cgroup.procs`]
  })
}

const ENTER_SCRIPT = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@"'

/** The words that start a command in these groups; of what is started later none is in others. */
export function createGroupArguments(files: readonly string[], command: readonly string[]): string[] {
  return ['-c', ENTER_SCRIPT, 'sh', ...files, '--', ...command]
}
