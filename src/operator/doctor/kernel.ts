import type { Feature, FeatureName, SelfTest } from '../../host/diagnosis.ts'
import { type CheckFinding, findingsOf } from './findings.ts'

interface About {
  since: string
  /** What is different without it. */
  without: string
  /** No volume can be mounted without it. */
  isNeeded?: true
}

const FEATURES: Readonly<Record<FeatureName, About>> = {
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
  FS_IOC_GETFSUUID: { since: '6.9', without: 'volumes are named by f_fsid, which an upgrade to 6.9 changes' },
  listxattrat: { since: '6.13', without: 'extended attributes are listed through /proc: slower' },
}

const { ok, warning, fault } = findingsOf('kernel')

export function kernelFindings(features: readonly Feature[]): CheckFinding[] {
  const works = features.filter((feature) => feature.works).map(({ name }) => name)
  return [
    ...(works.length > 0 ? [ok(`tried and working: ${works.join(', ')}`)] : []),
    ...features.filter((feature) => !feature.works).map(missing),
  ]
}

function missing({ name, detail }: Feature): CheckFinding {
  const { since, without, isNeeded } = FEATURES[name]
  const text = `${name} does not work (${detail}): ${without}`
  const way = /EPERM|EACCES/.test(detail)
    ? 'run it as root on the node itself, not in a container with a filter of system calls'
    : name === 'user namespace'
      ? 'raise the sysctl user.max_user_namespaces'
      : `use Linux ${since} or newer`
  return isNeeded ? fault(text, way) : warning(text, way)
}

/** A layer that says something else than Node must not touch anybody's files. */
export function systemCallFindings(tests: readonly SelfTest[]): CheckFinding[] {
  const { ok, fault } = findingsOf('system calls')
  const agreed = tests.filter(({ difference }) => difference === '').map(({ name }) => name)
  return [
    ...(agreed.length > 0 ? [ok(`they work as they should: ${agreed.join(', ')}`)] : []),
    ...tests
      .filter(({ difference }) => difference !== '')
      .map(({ name, difference }) => fault(`${name}: ${difference}`, 'use no walk on this node, and report it')),
  ]
}
