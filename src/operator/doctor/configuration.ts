import { errorCode, type Host } from '../../host/host.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { type CheckFinding, findingsOf } from './findings.ts'
import { lookAtPath } from './permissions.ts'

const { ok, warning, fault } = findingsOf('configuration')

export interface Configuration {
  file: string
  faults: readonly string[]
}

export function configurationFindings(host: Host, config: NodeConfig, { file, faults }: Configuration): CheckFinding[] {
  const remedy = `correct ${file}: until then mounts are refused`
  const isThere = lookAtPath(host, file) !== undefined
  const valid = isThere ? ok(`${file} is valid`) : ok(`${file} does not exist: the defaults apply`)
  return [
    ...(faults.length === 0 ? [valid] : faults.map((text) => fault(text, remedy))),
    ...config.allowedSources.flatMap((source) => sourceFindings(host, source, file)),
  ]
}

function sourceFindings(host: Host, source: string, file: string): CheckFinding[] {
  if (source === '/') {
    return [warning('pods may mount any directory of the node', `name directories in allowedSources, in ${file}`)]
  }
  // Others' are asked by their mount alone.
  if (!source.startsWith('/') || source.startsWith('//')) return []
  if (lookAtPath(host, source) === undefined) {
    return [warning(`allowedSources has ${source}, which does not exist`, `mkdir -p ${source}`)]
  }
  return [mappingOf(host, source)]
}

/** Tried on a detached mount of the directory, as a pod's volume would be. */
function mappingOf({ inodes, mounts }: Host, source: string): CheckFinding {
  const directory = inodes.openTrusted(source)
  try {
    const tree = mounts.cloneTree(directory)
    try {
      mounts.swapGroups(tree, 0, 1)
      return ok(`${source} can be mounted, and its file system maps groups (ownership idmap)`)
    } finally {
      inodes.close(tree)
    }
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return ok(`${source} exists; its file system cannot map groups (ownership idmap is refused, auto walks)`)
  } finally {
    inodes.close(directory)
  }
}
