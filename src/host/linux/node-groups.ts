import { mkdirSync, readFileSync } from 'node:fs'

/**
 * A group below the root of cgroup2, because a group with controlled children may not have processes of its own
 * (cgroups(7)).
 */
const LEAF_GROUP = 'modekeep-fuse'

/**
 * Returns the files that move a process from its control groups into the node's. A container runtime kills all
 * processes in its container's groups.
 * @param mountinfo of /proc/self/mountinfo, which may also list a container's own view of its groups
 * @param top directory of the node's groups
 * @throws if a group cannot be created
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

/** Returns the arguments of a shell that starts a command in these groups. All its later children are in them too. */
export function createGroupArguments(files: readonly string[], command: readonly string[]): string[] {
  return ['-c', ENTER_SCRIPT, 'sh', ...files, '--', ...command]
}
