import { createFault, createOptionFault, type Fault } from '../../errors/fault.ts'
import { quoted, Refusal } from '../../errors/refusal.ts'
import { type Handle, type Host, isDirectory, refuseOnErrno, type Stat, useOrClose } from '../../host/host.ts'
import { createUnresponsiveRefusal, type PathLookups } from '../../mount-table/responsiveness.ts'
import { areNested, toPathPrefix } from '../../mount-table/tree-location.ts'
import { checkSubPath } from '../../path/open-sub-path.ts'
import { type NodeConfig, PRIVATE } from '../../request/defaults.ts'
import type { KindRequest } from '../../request/request.ts'
import { formatSource, getSourcePath, type Source } from '../../request/source.ts'
import type { OpenedSource } from './kind.ts'

/** Finds the faults of a source of the node and of its subPath. @param what the permitted kinds of source, for messages */
export function findSourceFaults({ source, subPath }: KindRequest, config: NodeConfig, what = 'directory'): Fault[] {
  const ofPart = subPath === undefined ? [] : checkSubPath(subPath)
  const path = formatSource(source)
  if (path === undefined)
    return [
      createOptionFault('source-invalid', 'source', 'is missing', `name the ${what} of the node to mount`),
      ...ofPart,
    ]
  return [...findPathFaults(path, config), ...ofPart]
}

/** Finds the faults of a path that do not depend on the node's rules. */
export function findPathFaults(source: string, config: NodeConfig): Fault[] {
  const parts = source.split('/').slice(1)
  const isNormal = source.startsWith('/') && !source.includes('\0')
  if (!isNormal || parts.some((part) => ['', '.', '..'].includes(part))) {
    return [
      createOptionFault(
        'source-invalid',
        'source',
        `is ${quoted(source)}`,
        `write an absolute path without "..", ".", "//" or a trailing slash`,
      ),
    ]
  }
  if (!holdsOwnRecords(source, config)) return []
  return [
    createOptionFault(
      'source-protected',
      'source',
      `is ${quoted(source)}`,
      'name another directory',
      "it holds modekeep's own records, which no pod may see",
    ),
  ]
}

/** Whether a directory contains modekeep's records, or lies in a directory of records. */
export function holdsOwnRecords(path: string, { stateDir }: Pick<NodeConfig, 'stateDir'>): boolean {
  const places = Object.values(PRIVATE).map((name) => `${stateDir}/${name}`)
  return places.some((place) => areNested(toPathPrefix(path), toPathPrefix(place)))
}

/** A requirement for a source of the node, and its wording in messages. */
export interface SourceRequirement {
  /** Returns the fault of an existing source and its remedy; undefined: none. */
  fault(stat: Stat): string | undefined
  what?: string
  /** The remedy for a missing source. */
  remedy?: string
}

export const DIRECTORY_REQUIREMENT: SourceRequirement = {
  fault: (stat) => (isDirectory(stat) ? undefined : 'is not a directory: name one'),
}

/**
 * Opens a source by a path without links, so that the path, which was compared with the node's rules, is its real
 * location.
 * @throws {Refusal} naming the source and what to do
 */
export function openNode(host: Host, path: string, requirement = DIRECTORY_REQUIREMENT): OpenedSource {
  return toOpened(host, path, requirement, openWithoutLinks(host, path, requirement))
}

/**
 * Like `openNode`, for a caller that must not wait for the path.
 * @throws {Refusal} also if the lookup gets no answer
 */
export async function openNodeBy(
  lookups: PathLookups,
  host: Host,
  path: string,
  requirement = DIRECTORY_REQUIREMENT,
): Promise<OpenedSource> {
  const handle = await lookups.open(path).catch((error) =>
    refuseOnErrno(
      (): never => {
        throw error
      },
      createExplanation(path, requirement),
    ),
  )
  if (handle === undefined) throw createUnresponsiveRefusal(path)
  return toOpened(host, path, requirement, handle)
}

function toOpened(host: Host, path: string, requirement: SourceRequirement, opened: Handle): OpenedSource {
  return useOrClose(host.inodes, opened, (handle) => {
    const stat = host.inodes.stat(handle)
    const fault = requirement.fault(stat)
    if (fault !== undefined)
      throw Refusal.of('source-missing', `${requirement.what ?? 'source'} ${quoted(path)} ${fault}`)
    return { handle, stat, path }
  })
}

export function openWithoutLinks({ inodes }: Host, path: string, requirement: Partial<SourceRequirement>): Handle {
  return refuseOnErrno(() => inodes.openLinkFree(path), createExplanation(path, requirement))
}

function createExplanation(
  path: string,
  { what = 'source', remedy = 'create the directory' }: Partial<SourceRequirement>,
) {
  const it = `${what} ${quoted(path)}`
  return () => ({
    ENOENT: createFault('source-missing', `${it} does not exist on this node`, `${remedy}, or correct the name`),
    ELOOP: createFault(
      'source-link',
      `${it} has a symbolic link in its path, which could lead anywhere`,
      `write the real path`,
    ),
    ENOTDIR: createFault('source-missing', `${it} leads through something that is not a directory`, `correct the name`),
  })
}

/** Returns the path of a source that its kind has accepted as a path of the node. */
export function getNodePath(source: Source): string {
  const path = getSourcePath(source)
  if (path === undefined) throw new Error(`source ${formatSource(source)} is no path of the node`)
  return path
}
