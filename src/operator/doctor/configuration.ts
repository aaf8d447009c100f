import { dirname } from 'node:path'
import { closing } from '../../host/handle.ts'
import { errorCode, type Host } from '../../host/host.ts'
import { swapping } from '../../host/id-map.ts'
import { parseMountinfo } from '../../mount-table/mountinfo.ts'
import { type IsSilentAt, isUnanswered, silentPaths } from '../../mount-table/silence.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { directoryOf } from '../../request/rule-source.ts'
import { type Found, fault, ok, silence, warning } from './findings.ts'
import { lookAtPath } from './paths.ts'
import { ruleFindings, systemGroupFindings } from './rules.ts'

export interface Configuration {
  file: string
  faults: readonly string[]
}

export async function* configurationFindings(
  host: Host,
  config: NodeConfig,
  { file, faults }: Configuration,
): AsyncGenerator<Found> {
  for (const text of faults) yield fault(text, `correct ${file}: until then mounts are refused`)
  if (faults.length === 0) {
    yield ok(lookAtPath(host, file) ? `${file} is valid` : `${file} does not exist: the defaults apply`)
  }
  yield* ruleFindings(config.allow, file)
  yield* systemGroupFindings(config.allow, 'allow', file)
  yield* systemGroupFindings(config.map, 'map', file)
  const entries = config.allow.flatMap(({ sources = ['/*'] }) => sources)
  const isSilentAt = silentPaths({ host })
  // Others' are asked by their mount alone.
  for (const source of new Set(entries.flatMap((entry) => directoryOf(entry) ?? []))) {
    if (source === '/') {
      yield warning('pods may mount any directory of the node', `name directories in the rules (allow) of ${file}`)
    } else if (await isSilent(host, source, isSilentAt)) {
      yield silence(source)
    } else if (lookAtPath(host, source) === undefined) {
      yield warning(`a rule has ${source}, which does not exist`, toHave(source, file))
    } else {
      yield mappingOf(host, source)
      yield* setIdFindings(host, source)
    }
  }
}

/** What is below /dev the kernel makes. */
const toHave = (source: string, file: string) =>
  source.startsWith('/dev/') ? `attach the disk, or correct its name in "allow" of ${file}` : `mkdir -p ${source}`

/** A link may lead to any server, past what the path says. */
async function isSilent(host: Host, source: string, isSilentAt: IsSilentAt): Promise<boolean> {
  return (await isSilentAt(source)) || (hasLink(host, source) && (await isUnanswered(host, source, source)))
}

function hasLink({ inodes }: Host, path: string): boolean {
  try {
    inodes.close(inodes.openLinkFree(path))
    return false
  } catch (error) {
    return errorCode(error) === 'ELOOP'
  }
}

const NOSUID = 'nosuid'
const OTHERS_ENTER = 0o011

/**
 * A volume is mounted nosuid for its pods, but at its own path a set-id program that the pod's root has made has its
 * effect for whoever reaches it there.
 */
function* setIdFindings(host: Host, source: string): Generator<Found> {
  for (let at = source; at !== '/'; at = dirname(at)) {
    const stat = lookAtPath(host, at)
    if (stat !== undefined && (stat.mode & OTHERS_ENTER) === 0) return
  }
  const options = parseMountinfo(host.mounts.table())
    .filter(({ mountPoint }) => mountPoint === '/' || source === mountPoint || source.startsWith(`${mountPoint}/`))
    .reduce<{ mountPoint: string; options: readonly string[] } | undefined>(
      (deepest, row) => (deepest && deepest.mountPoint.length > row.mountPoint.length ? deepest : row),
      undefined,
    )?.options
  if (options === undefined || options.includes(NOSUID)) return
  yield warning(
    `${source} is on a mount without nosuid: users of the node can run set-id programs that pods put there`,
    `chmod 700 ${dirname(source)}, or mount its file system with nosuid`,
  )
}

/** Tried on a detached mount of the directory, as a pod's volume would be. */
function mappingOf({ inodes, mounts }: Host, source: string): Found {
  const directory = inodes.openTrusted(source)
  using _directory = closing(inodes, directory)
  try {
    const tree = mounts.cloneTree(directory)
    using _tree = closing(inodes, tree)
    mounts.mapIds(tree, swapping(0, 1))
    return ok(`${source} can be mounted, and its file system maps groups (ownership idmap)`)
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return ok(`${source} exists; its file system cannot map groups (ownership idmap is refused, auto walks)`)
  }
}
