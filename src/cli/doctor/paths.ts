import { basename, dirname, join } from 'node:path'
import type { NodeConfig } from '../../config/defaults.ts'
import { FILE_TYPE_MASK, type Host, isDirectory, type Stat, SYMLINK_TYPE } from '../../kernel/host.ts'
import { deferHandleClose } from '../../kernel/inodes.ts'
import type { NodeDiagnosis } from '../../kernel/linux/diagnosis.ts'
import { tolerateSystemErrors } from '../../kernel/system-error.ts'
import { type CheckResult, createFaultResult, createOkResult, createWarningResult } from './findings.ts'

const OTHERS_WRITE_BIT = 0o002
const GROUP_WRITE_BIT = 0o020
const STICKY_BIT = 0o1000
const GROUP_AND_OTHERS_BITS = 0o077

// A journal of a million inodes takes about RECOMMENDED_FREE_BYTES (docs/ownership.md). Below MIN_FREE_BYTES not even
// records fit.
const RECOMMENDED_FREE_BYTES = 256 * 2 ** 20
const MIN_FREE_BYTES = 4 * 2 ** 20
const RECOMMENDED_FREE_INODES = 1000
const MIN_FREE_INODES = 10

/** Returns undefined if the path does not exist. Links in its parent directories are followed. */
export function statPath({ inodes }: Pick<Host, 'inodes'>, path: string): Stat | undefined {
  return tolerateSystemErrors(() => {
    const parent = inodes.openTrusted(dirname(path))
    using _ = deferHandleClose(inodes, parent)
    return inodes.statMountPoint(parent, Buffer.from(basename(path) || '.'))
  })
}

/** A path that users other than root can write. */
export interface WritablePath {
  place: string
  stat: Stat
}

/**
 * Finds the path and those of its parents below `top` that users other than root can write, and so replace its content.
 * Checks the path as written, because a link in it may be replaced, and the resolved path.
 */
export function findWritablePaths(host: Pick<Host, 'inodes'>, path: string, top = ''): WritablePath[] {
  const found = new Map<string, Stat>()
  for (const last of new Set([path, resolvePathLinks(host, path)])) {
    for (let at = last; at !== top; at = dirname(at)) {
      const stat = statPath(host, at)
      if (stat && isWritableByOthers(stat, at === last)) found.set(at, stat)
      if (at === '/') break
    }
  }
  return [...found].map(([place, stat]) => ({ place, stat }))
}

/** Returns a fault for each directory through which users other than root can replace the path's content. */
export function checkPathWriters(host: Host, what: string, path: string): CheckResult[] {
  return findWritablePaths(host, path).map(({ place }) =>
    createFaultResult(
      `users other than root can replace ${what} through ${place}`,
      `chown root ${place}; chmod go-w ${place}`,
    ),
  )
}

/** Resolves the links of a directory's path; for any other file, those of its parent. */
function resolvePathLinks({ inodes }: Pick<Host, 'inodes'>, path: string): string {
  const whole = tolerateSystemErrors(() => inodes.openTrusted(path))
  const directory = whole ?? inodes.openTrusted(dirname(path))
  using _ = deferHandleClose(inodes, directory)
  const real = inodes.pathOf(directory)
  return whole === undefined ? join(real, basename(path)) : real
}

/** True if users other than root can replace entries. With the sticky bit they can create entries, but not replace root's. */
function isWritableByOthers(stat: Stat, isLast: boolean): boolean {
  if (stat.uid !== 0 && stat.uid !== process.geteuid?.()) return true
  // A link's own permissions have no effect.
  if ((stat.mode & FILE_TYPE_MASK) === SYMLINK_TYPE) return false
  const writes = (stat.mode & OTHERS_WRITE_BIT) !== 0 || ((stat.mode & GROUP_WRITE_BIT) !== 0 && stat.gid !== 0)
  return writes && (isLast || !isDirectory(stat) || (stat.mode & STICKY_BIT) === 0)
}

/** Checks owners and modes. A user who can write the state directory or the configuration controls what root does. */
export function* checkPathPermissions(host: Host, config: NodeConfig, configFile: string): Generator<CheckResult> {
  const { stateDir, logFile } = config
  const places = { 'the state directory': stateDir, 'the configuration': configFile, 'the log': logFile }
  for (const [what, path] of Object.entries(places)) {
    if (statPath(host, path) === undefined) continue
    const faults = checkPathWriters(host, what, path)
    yield* faults.length > 0 ? faults : [createOkResult(`${what} ${path} is writable by root only`)]
  }
  const state = statPath(host, stateDir)
  if (state === undefined) yield createOkResult(`the state directory ${stateDir} will be created by the first mount`)
  else if ((state.mode & GROUP_AND_OTHERS_BITS) !== 0) {
    yield createWarningResult(`users other than root can read the state directory ${stateDir}`, `chmod 700 ${stateDir}`)
  }
}

/** Checks free space. On a full disk walks stop before they change anything, and restores stay pending. */
export function* checkFreeSpace(host: Host, { space }: NodeDiagnosis, stateDir: string): Generator<CheckResult> {
  let place = stateDir
  while (place !== '/' && statPath(host, place) === undefined) place = dirname(place)
  if (isPathReadOnly(host, place)) {
    return yield createFaultResult(
      `the file system of ${stateDir} is read-only, so nothing can be recorded and mounts are refused`,
      'mount it for writing, or move stateDir to another file system',
    )
  }
  const { bytes, inodes } = space(place)
  const left = `${Math.floor(bytes / 2 ** 20)} MiB${inodes === undefined ? '' : ` and ${inodes} inodes`}`
  const text = `the file system of ${stateDir} has ${left} left`
  const remedy = 'make room there, or move stateDir to another disk'
  const hasLess = (leastBytes: number, leastInodes: number) =>
    bytes < leastBytes || (inodes ?? leastInodes) < leastInodes
  if (hasLess(MIN_FREE_BYTES, MIN_FREE_INODES)) yield createFaultResult(text, remedy)
  else
    yield hasLess(RECOMMENDED_FREE_BYTES, RECOMMENDED_FREE_INODES)
      ? createWarningResult(text, remedy)
      : createOkResult(text)
}

function isPathReadOnly({ inodes }: Host, path: string): boolean {
  const directory = inodes.openTrusted(path)
  using _ = deferHandleClose(inodes, directory)
  return inodes.isReadOnly(directory)
}
