import { dirname } from 'node:path'
import { parseSourceEntryDirectory } from '../../config/rule.ts'
import { createFault, type Fault, renderFault } from '../../errors/fault.ts'
import { getErrno, type Handle, type Host } from '../../kernel/host.ts'
import { createGroupSwapMap } from '../../kernel/id-map.ts'
import { deferHandleClose } from '../../kernel/inodes.ts'
import { parseMountinfo } from '../../kernel/mount-table/mountinfo.ts'
import {
  createUnresponsiveCheck,
  isLookupUnanswered,
  type UnresponsiveCheck,
} from '../../kernel/mount-table/responsiveness.ts'
import type { Session } from '../../state/session.ts'
import { runIsolatedWork, UnresponsiveRefusal } from '../../worker/isolated.ts'
import {
  type CheckResult,
  createFaultResult,
  createOkResult,
  createUnresponsiveWarning,
  createWarningResult,
} from './findings.ts'
import { statPath } from './paths.ts'
import { checkAllowRules, checkSystemGroups } from './rules.ts'

export interface ConfigurationFile {
  file: string
  faults: readonly Fault[]
}

export async function* checkConfiguration(
  session: Session,
  { file, faults }: ConfigurationFile,
): AsyncGenerator<CheckResult> {
  const { host, config } = session
  for (const one of faults) yield createFaultResult(renderFault(one), `correct ${file}: until then mounts are refused`)
  if (faults.length === 0) {
    yield createOkResult(statPath(host, file) ? `${file} is valid` : `${file} does not exist: the defaults apply`)
  }
  yield* checkAllowRules(config.allow, file)
  yield* checkSystemGroups(config.allow, 'allow', file)
  yield* checkSystemGroups(config.map, 'map', file)
  const entries = config.allow.flatMap(({ sources = ['/*'] }) => sources)
  // Sources of servers are no local directories, so only their mounts are checked.
  const sources = [...new Set(entries.flatMap((entry) => parseSourceEntryDirectory(entry) ?? []))]
  const directories = sources.filter((source) => source !== '/')
  yield* checkAllowedSources(session, directories, file)
  if (directories.length < sources.length) {
    yield createWarningResult(
      'pods may mount any directory of the node',
      `name directories in the rules (allow) of ${file}`,
    )
  }
}

/**
 * Checks directories and disks that rules allow as sources. With isolated walks another process opens them, because this
 * one must not wait for a locked directory.
 * @param file the configuration, for messages
 */
export async function* checkAllowedSources(
  session: Session,
  sources: readonly string[],
  file: string,
): AsyncGenerator<CheckResult> {
  const isSilentAt = createUnresponsiveCheck(session)
  const responsive: string[] = []
  const findings = new Map<string, readonly CheckResult[]>()
  for (const source of sources) {
    if (await isSourceUnresponsive(session, source, isSilentAt))
      findings.set(source, [createUnresponsiveWarning(source)])
    else responsive.push(source)
  }
  const checked = await checkResponsiveSources(session, { sources: responsive, file })
  for (const source of sources) yield* findings.get(source) ?? checked.get(source) ?? []
}

/** True if a lookup of the source would block. A link may lead to a server that the path does not show. */
async function isSourceUnresponsive(session: Session, source: string, isSilentAt: UnresponsiveCheck): Promise<boolean> {
  const { host, isolatesWalks } = session
  if (await isSilentAt(source)) return true
  return (isolatesWalks || hasSymlinkInPath(host, source)) && (await isLookupUnanswered(host, source, source))
}

function hasSymlinkInPath({ inodes }: Host, path: string): boolean {
  try {
    inodes.close(inodes.openLinkFree(path))
    return false
  } catch (error) {
    return getErrno(error) === 'ELOOP'
  }
}

/** The request to the isolated process. */
interface SourceCheckRequest {
  sources: readonly string[]
  file: string
}

/** Returns results by source. If the process becomes unresponsive, each source is checked in a process of its own. */
async function checkResponsiveSources(
  session: Session,
  order: SourceCheckRequest,
): Promise<Map<string, readonly CheckResult[]>> {
  const { sources, file } = order
  if (sources.length === 0) return new Map()
  if (!session.isolatesWalks) return checkEachSource(session.host, order)
  try {
    const about = {
      work: 'sources',
      about: order,
      givenUp: () => createFault('unresponsive-call', 'the sources do not respond'),
    }
    return new Map(await runIsolatedWork<[string, readonly CheckResult[]][]>(session, about))
  } catch (error) {
    if (!(error instanceof UnresponsiveRefusal)) throw error
    const [source = '', ...others] = sources
    if (others.length === 0) return new Map([[source, [createUnresponsiveWarning(source)]]])
    const found = new Map<string, readonly CheckResult[]>()
    for (const one of sources)
      for (const each of await checkResponsiveSources(session, { sources: [one], file })) found.set(...each)
    return found
  }
}

/** Runs the checks in the isolated process. */
export async function checkSourcesInWorker(
  { host }: Session,
  _: Handle,
  order: SourceCheckRequest,
): Promise<[string, readonly CheckResult[]][]> {
  return [...checkEachSource(host, order)]
}

function checkEachSource(host: Host, { sources, file }: SourceCheckRequest): Map<string, readonly CheckResult[]> {
  return new Map(sources.map((source) => [source, [...checkAllowedSource(host, source, file)]]))
}

function* checkAllowedSource(host: Host, source: string, file: string): Generator<CheckResult> {
  if (statPath(host, source) === undefined) {
    yield createWarningResult(`a rule has ${source}, which does not exist`, formatSourceRemedy(source, file))
    return
  }
  yield checkIdMappedMount(host, source)
  yield* checkSetIdExposure(host, source)
}

/** Names the remedy for a missing source. Only the kernel creates devices below /dev, so mkdir is no remedy there. */
const formatSourceRemedy = (source: string, file: string) =>
  source.startsWith('/dev/') ? `attach the disk, or correct its name in "allow" of ${file}` : `mkdir -p ${source}`

const NOSUID_OPTION = 'nosuid'
const GROUP_OR_OTHERS_EXECUTE_BITS = 0o011

/**
 * Warns if users of the node can run set-id programs of pods. Pods see the volume mounted nosuid, but at its own path a
 * set-id program that root of a pod creates is effective.
 */
function* checkSetIdExposure(host: Host, source: string): Generator<CheckResult> {
  for (let at = source; at !== '/'; at = dirname(at)) {
    const stat = statPath(host, at)
    if (stat !== undefined && (stat.mode & GROUP_OR_OTHERS_EXECUTE_BITS) === 0) return
  }
  const options = parseMountinfo(host.mounts.table())
    .filter(({ mountPoint }) => mountPoint === '/' || source === mountPoint || source.startsWith(`${mountPoint}/`))
    .reduce<{ mountPoint: string; options: readonly string[] } | undefined>(
      (deepest, row) => (deepest && deepest.mountPoint.length > row.mountPoint.length ? deepest : row),
      undefined,
    )?.options
  if (options === undefined || options.includes(NOSUID_OPTION)) return
  yield createWarningResult(
    `${source} is on a mount without nosuid: users of the node can run set-id programs that pods put there`,
    `chmod 700 ${dirname(source)}, or mount its file system with nosuid`,
  )
}

/** Tries an id mapping on a detached clone of the directory's mount, as for a pod's volume. */
function checkIdMappedMount({ inodes, mounts }: Host, source: string): CheckResult {
  const directory = inodes.openTrusted(source)
  using _directory = deferHandleClose(inodes, directory)
  try {
    const tree = mounts.cloneTree(directory)
    using _tree = deferHandleClose(inodes, tree)
    mounts.mapIds(tree, createGroupSwapMap(0, 1))
    return createOkResult(`${source} can be mounted, and its file system maps groups (ownership idmap)`)
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return createOkResult(
      `${source} exists; its file system cannot map groups (ownership idmap is refused, auto walks)`,
    )
  }
}
