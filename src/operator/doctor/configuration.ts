import { closing } from '../../host/handle.ts'
import { errorCode, type Host } from '../../host/host.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { type Found, fault, ok, warning } from './findings.ts'
import { lookAtPath } from './paths.ts'

export interface Configuration {
  file: string
  faults: readonly string[]
}

export function* configurationFindings(
  host: Host,
  config: NodeConfig,
  { file, faults }: Configuration,
): Generator<Found> {
  for (const text of faults) yield fault(text, `correct ${file}: until then mounts are refused`)
  if (faults.length === 0) {
    yield ok(lookAtPath(host, file) ? `${file} is valid` : `${file} does not exist: the defaults apply`)
  }
  for (const source of config.allowedSources) {
    if (source === '/') {
      yield warning('pods may mount any directory of the node', `name directories in allowedSources, in ${file}`)
    } else if (source.startsWith('/') && !source.startsWith('//')) {
      // Others' are asked by their mount alone.
      yield lookAtPath(host, source)
        ? mappingOf(host, source)
        : warning(`allowedSources has ${source}, which does not exist`, `mkdir -p ${source}`)
    }
  }
}

/** Tried on a detached mount of the directory, as a pod's volume would be. */
function mappingOf({ inodes, mounts }: Host, source: string): Found {
  const directory = inodes.openTrusted(source)
  using _directory = closing(inodes, directory)
  try {
    const tree = mounts.cloneTree(directory)
    using _tree = closing(inodes, tree)
    mounts.swapGroups(tree, 0, 1)
    return ok(`${source} can be mounted, and its file system maps groups (ownership idmap)`)
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return ok(`${source} exists; its file system cannot map groups (ownership idmap is refused, auto walks)`)
  }
}
