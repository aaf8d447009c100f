import { basename, dirname } from 'node:path'
import { unlessRefused } from '../../host/file-error.ts'
import { FILE_TYPE, type Host, isDirectory, type Stat, SYMLINK } from '../../host/host.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { type CheckFinding, findingsOf } from './findings.ts'

const { ok, warning, fault } = findingsOf('state')
const OTHERS_WRITE = 0o002
const GROUP_WRITES = 0o020
const STICKY = 0o1000
const ANY_OTHERS = 0o077

/** Undefined where nothing is there. Links are followed. */
export function lookAtPath({ inodes }: Pick<Host, 'inodes'>, path: string): Stat | undefined {
  return unlessRefused(() => {
    const parent = inodes.openTrusted(dirname(path))
    try {
      return inodes.statMountPoint(parent, Buffer.from(basename(path) || '.'))
    } finally {
      inodes.close(parent)
    }
  })
}

/** Of a path and all above it, but not from `top` on, what others than root can write, and so exchange what is in it. */
export function writers(host: Pick<Host, 'inodes'>, path: string, top = ''): string[] {
  const found: string[] = []
  const last = realPath(host, path)
  for (let at = last; at !== top; at = dirname(at)) {
    const stat = lookAtPath(host, at)
    if (stat && isOthers(stat, at === last)) found.push(at)
    if (at === '/') break
  }
  return found
}

/** With the links above it resolved. */
function realPath({ inodes }: Pick<Host, 'inodes'>, path: string): string {
  const parent = inodes.openTrusted(dirname(path))
  try {
    const above = inodes.pathOf(parent)
    return `${above === '/' ? '' : above}/${basename(path)}`
  } finally {
    inodes.close(parent)
  }
}

/** In a directory with the sticky bit others can make names, but not exchange root's. */
function isOthers(stat: Stat, isLast: boolean): boolean {
  if (stat.uid !== 0) return true
  // A link has no permissions of its own.
  if ((stat.mode & FILE_TYPE) === SYMLINK) return false
  const writes = (stat.mode & OTHERS_WRITE) !== 0 || ((stat.mode & GROUP_WRITES) !== 0 && stat.gid !== 0)
  return writes && (isLast || !isDirectory(stat) || (stat.mode & STICKY) === 0)
}

/** Who can write to the state directory or the configuration decides what root does. */
export function permissionFindings(host: Host, config: NodeConfig, configFile: string): CheckFinding[] {
  const { stateDir, logFile } = config
  const places = [
    ['the state directory', stateDir],
    ['the configuration', configFile],
    ['the log', logFile],
  ] as const
  const findings = places.flatMap(([what, path]) => {
    if (lookAtPath(host, path) === undefined) return []
    const others = writers(host, path)
    if (others.length === 0) return [ok(`${what} ${path} is writable by root only`)]
    return others.map((other) =>
      fault(`users other than root can replace ${what} through ${other}`, `chown root ${other}; chmod go-w ${other}`),
    )
  })
  const state = lookAtPath(host, stateDir)
  if (state === undefined)
    return [...findings, ok(`the state directory ${stateDir} will be created by the first mount`)]
  if ((state.mode & ANY_OTHERS) === 0) return findings
  return [
    ...findings,
    warning(`users other than root can read the state directory ${stateDir}`, `chmod 700 ${stateDir}`),
  ]
}
