import { Refusal } from '../../errors/refusal.ts'
import type { Diagnosis, Feature, FeatureName } from '../../host/linux/diagnosis.ts'
import type { SelfTest } from '../../host/linux/self-test.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { DEFAULT_FS_TYPES } from '../../request/rule.ts'
import { type CheckResult, fault, ok, warning } from './findings.ts'

/** The first kernel release of each feature, and the consequence of its absence: a fault if it `isNeeded`. */
const FEATURES: Readonly<Record<FeatureName, { since: string; without: string; isNeeded?: true }>> = {
  open_tree: { since: '5.2', without: 'no volume can be mounted', isNeeded: true },
  fsopen: { since: '5.2', without: 'no volume but bind can be mounted', isNeeded: true },
  mount_setattr: { since: '5.12', without: 'no volume can be mounted', isNeeded: true },
  'statx mount ids': { since: '5.8', without: 'no volume can be mounted', isNeeded: true },
  openat2: { since: '5.6', without: 'paths are resolved component by component: slower' },
  'user namespace': { since: '3.8', without: 'ownership idmap is refused, and auto walks' },
  'idmapped mount': { since: '5.12, tmpfs 6.3', without: 'ownership idmap may be refused, and auto walk' },
  MOVE_MOUNT_BENEATH: { since: '6.5', without: 'a replaced mount is missing for a moment' },
  fchmodat2: { since: '6.6', without: 'modes are changed through /proc: slower' },
  'unique mount ids': { since: '6.8', without: 'a mount id may be reused: mounts are told apart by inode only' },
  FS_IOC_GETFSUUID: {
    since: '6.9',
    without:
      'the UUID of ext4, xfs and btrfs is read by their own ioctls, that of f2fs from its disk; others are named by f_fsid',
  },
  listxattrat: { since: '6.13', without: 'extended attributes are listed through /proc: slower' },
}

/** @param release of the running kernel, from uname(2): 6.18.1-2-amd64 */
export function* checkKernel(features: readonly Feature[], release: string): Generator<CheckResult> {
  const works = features.filter((feature) => feature.works).map(({ name }) => name)
  if (works.length > 0) yield ok(`tried and working: ${works.join(', ')}`)
  for (const { name, detail, errno } of features.filter((feature) => !feature.works)) {
    const { since, without, isNeeded } = FEATURES[name]
    const text = `${name} does not work (${detail}): ${without}`
    // A seccomp filter may reject a call with ENOSYS, like a kernel that lacks it.
    const isFiltered = errno === 'EPERM' || errno === 'EACCES' || (errno === 'ENOSYS' && isSince(release, since))
    const remedy = isFiltered
      ? 'run it as root on the node itself, not in a container with a filter of system calls'
      : name === 'user namespace'
        ? 'raise the sysctl user.max_user_namespaces'
        : `use Linux ${since} or newer`
    yield isNeeded ? fault(text, remedy) : warning(text, remedy)
  }
}

function isSince(release: string, since: string): boolean {
  const [major = 0, minor = 0] = release.split('.').map((part) => Number.parseInt(part, 10))
  const [from = 0, point = 0] = since.split('.').map((part) => Number.parseInt(part, 10))
  return major > from || (major === from && minor >= point)
}

/** Compares modekeep's system calls with Node's. On a difference modekeep must not change files of this node. */
export function* checkSystemCalls(tests: readonly SelfTest[]): Generator<CheckResult> {
  const agreed = tests.filter(({ difference }) => difference === '').map(({ name }) => name)
  if (agreed.length > 0) yield ok(`they work as they should: ${agreed.join(', ')}`)
  for (const { name, difference } of tests) {
    if (difference !== '') yield fault(`${name}: ${difference}`, 'use no walk on this node, and report it')
  }
}

/** Lists the programs that a file system type needs. The kernel mounts other types without a program. */
function listHelperPrograms(fsType: string): string[] {
  if (fsType === 'nfs' || fsType === 'nfs4' || fsType === 'cifs') return [`mount.${fsType}`]
  return fsType.startsWith('fuse.') ? [fsType.slice('fuse.'.length), 'fusermount3'] : []
}

/** Checks the helper programs of the types that the configuration allows. */
export function* checkHelpers({ findProgram }: Diagnosis, { allow }: NodeConfig): Generator<CheckResult> {
  const fsTypes = new Set(allow.flatMap((rule) => rule.fsTypes ?? DEFAULT_FS_TYPES))
  const programs = new Set([...fsTypes].flatMap(listHelperPrograms))
  if (programs.size === 0) yield ok(`no helper program is needed for ${[...fsTypes].join(', ') || 'no volume'}`)
  for (const program of programs) {
    try {
      yield ok(`${program} is ${findProgram(program)}`)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      for (const { reason, remedy = 'install it' } of error.faults) {
        yield fault(reason, `${remedy}, or take its type out of the fsTypes of the rules (allow)`)
      }
    }
  }
}
