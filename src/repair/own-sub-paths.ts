import { dirname, normalize } from 'node:path'
import { getSourcePath } from '../config/source.ts'
import { quoteValue } from '../errors/refusal.ts'
import { DirentIterator } from '../kernel/dirents.ts'
import { deferHandleClose, getErrno, type Handle, type Inodes, isDirectory, tolerateErrno } from '../kernel/host.ts'
import {
  createCoveringMountFinder,
  DELETED_ROOT_SUFFIX,
  formatVolumeDirectory,
  type KubeletSubPath,
} from '../kernel/mount-table/kubelet-volume.ts'
import type { MountRow } from '../kernel/mount-table/mountinfo.ts'
import { createLocationFinder, resolveRelativePath } from '../kernel/mount-table/tree-location.ts'
import { findRecordedMounts, type MountRecord } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { needsIsolatedMount } from '../volume/unresponsive-source.ts'

/** A bind that kubelet made of a part of modekeep's own volume for a container's `subPath`. */
interface OwnSubPathBind {
  row: MountRow
  record: MountRecord
  /** The part in the volume as it was bound, without links. */
  boundPath: string
  /** The reason why a stale bind must be skipped. */
  doubt: string | undefined
}

/** Finds the binds whose part was deleted. Makes no lookup in a volume, because each bind has the path that was bound. */
export function findStaleOwnSubPaths(session: Session, rows: readonly MountRow[]): KubeletSubPath[] {
  const stale = rows.filter(({ root }) => root.endsWith(DELETED_ROOT_SUFFIX))
  return findOwnSubPathBinds(session, rows, stale).map(({ row, record: { directory }, boundPath, doubt }) => {
    return { row, volumeDirectory: directory, subPath: boundPath, stale: true, doubt }
  })
}

/** Finds the replacement of a deleted part in its volume. */
export function resolveOwnSubPath(session: Session, bind: KubeletSubPath): KubeletSubPath {
  if (bind.doubt !== undefined) return bind
  const { path, doubt } = findCurrentSubPath(session, bind.volumeDirectory, bind.subPath)
  return { ...bind, subPath: path ?? bind.subPath, doubt }
}

/** Lists the parent directories of each part: the part's removal changes one of them. */
export function findOwnSubPathDirectories(session: Session, rows: readonly MountRow[]): string[] {
  return findOwnSubPathBinds(session, rows, rows).flatMap(({ record: { directory, source }, boundPath }) => {
    const above: string[] = []
    for (let at = dirname(boundPath); at !== '.'; at = dirname(at)) above.push(`${source ?? directory}/${at}`)
    return above
  })
}

// The pod's directory, then volume, container, index.
const SUB_PATH_BIND_PATTERN = /^(.*\/pods\/[^/]+)\/volume-subpaths\/([^/]+)\/[^/]+\/\d+$/

function findOwnSubPathBinds(
  session: Session,
  rows: readonly MountRow[],
  wanted: readonly MountRow[],
): OwnSubPathBind[] {
  const { host } = session
  const binds = wanted.flatMap((row) => {
    const [, pod, volume] = SUB_PATH_BIND_PATTERN.exec(row.mountPoint) ?? []
    return pod === undefined || volume === undefined ? [] : [{ row, pod, volume }]
  })
  if (binds.length === 0) return []
  const resolveLocation = createLocationFinder(rows)
  const findRowCover = createCoveringMountFinder(rows, resolveLocation)
  const boot = host.bootId()
  const pluginsByPod = new Map(
    [...new Set(binds.map(({ pod }) => pod))].map((pod) => [pod, host.files.list(`${pod}/volumes`)]),
  )
  // A volume may have many binds, and its record is read once.
  const mountsByVolume = new Map<string, ReturnType<typeof findRecordedMounts>>()
  const findVolumeMounts = (pod: string, volume: string) =>
    mountsByVolume.getOrInsertComputed(`${pod}/${volume}`, () =>
      findRecordedMounts(
        session,
        (pluginsByPod.get(pod) ?? []).map((plugin) => formatVolumeDirectory(pod, plugin, volume)),
      ),
    )
  return binds.flatMap(({ row, pod, volume }): OwnSubPathBind[] => {
    return findVolumeMounts(pod, volume).flatMap(({ record }): OwnSubPathBind[] => {
      const isThere = record?.mounted !== undefined && record.ended === undefined && record.boot === boot
      if (!isThere || needsIsolatedMount(session, record.request)) return []
      const boundPath = findBoundSubPath(record, row, resolveLocation)
      return boundPath === undefined ? [] : [{ row, record, boundPath, doubt: findRowCover(row) }]
    })
  })
}

/**
 * Finds the bound part's path in its volume. A volume that is itself a `subPath` may show another directory by now: then
 * the part lies in a sibling of that.
 */
function findBoundSubPath(
  { directory, request, source }: MountRecord,
  { device, root }: MountRow,
  locationOf: ReturnType<typeof createLocationFinder>,
): string | undefined {
  const part = { device, path: root.endsWith(DELETED_ROOT_SUFFIX) ? root.slice(0, -DELETED_ROOT_SUFFIX.length) : root }
  const volume = locationOf(directory)
  const within = volume && resolveRelativePath(volume, part)
  if (within !== undefined) return within === '' ? undefined : within
  const whole = getSourcePath(request.source)
  if (request.subPath === undefined || whole === undefined || !source?.startsWith(`${whole}/`)) return undefined
  const wholeLocation = locationOf(whole)
  const names = (wholeLocation && resolveRelativePath(wholeLocation, part))?.split('/') ?? []
  const current = source.slice(whole.length + 1).split('/')
  const isSibling = current.slice(0, -1).every((name, at) => name === names[at])
  return isSibling && names.length > current.length ? names.slice(current.length).join('/') : undefined
}

interface CurrentSubPath {
  path?: string
  doubt?: string
}

/** Kubelet's atomic writer replaces the link of this name. */
const ATOMIC_WRITER_LINK_NAME = '..data'

/**
 * Finds the replacement of a part: the entry that has its name now, or the target of a link that was swapped from the
 * removed directory to a sibling. Kubelet's atomic writer and git-sync swap links so.
 */
function findCurrentSubPath({ host: { inodes } }: Session, volumeDirectory: string, boundPath: string): CurrentSubPath {
  const names = boundPath.split('/')
  using handles = new DisposableStack()
  const hold = (handle: Handle) => {
    handles.use(deferHandleClose(inodes, handle))
    return handle
  }
  try {
    const volume = hold(inodes.openLinkFree(volumeDirectory))
    const directories = [hold(inodes.openDirectory(volume, Buffer.from('.')))]
    for (const name of names) {
      const directory = directories[directories.length - 1] as Handle
      const entry = tolerateErrno('ENOENT', () => inodes.statMountPoint(directory, Buffer.from(name)))
      if (entry === undefined) return findSwappedLink(inodes, names, directories)
      // The later open follows links, and only inside the volume.
      if (directories.length === names.length || !isDirectory(entry) || entry.mountRoot) break
      directories.push(hold(inodes.openDirectory(directory, Buffer.from(name))))
    }
    return { path: boundPath }
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return { doubt: (error as Error).message }
  }
}

/** @param directories open, from the volume's root to the one in which the next name is missing */
function findSwappedLink(inodes: Inodes, names: readonly string[], directories: readonly Handle[]): CurrentSubPath {
  const depth = directories.length - 1
  const parent = names.slice(0, depth).join('/')
  const rest = names.slice(depth + 1)
  const found: string[] = []
  let entries = 0
  for (const [level, directory] of directories.entries()) {
    const above = names.slice(0, level)
    for (const { name, target } of listSymbolicLinks(inodes, directory)) {
      if (++entries > MAX_LISTED_LINKS)
        return { doubt: `the volume has more than ${MAX_LISTED_LINKS} links above ${quoteValue(parent)}` }
      if (target.startsWith('/')) continue
      const path = normalize([...above, target].join('/')).replace(/\/$/, '')
      if ((dirname(path) === '.' ? '' : dirname(path)) !== parent || path.startsWith('../')) continue
      // The atomic writer's links to single files lead to the same entry.
      const link = name === ATOMIC_WRITER_LINK_NAME && rest.length > 0 ? [] : [name]
      found.push([...above, ...link, ...rest].join('/'))
    }
  }
  const [path, other] = found
  const part = quoteValue(names.join('/'))
  if (path === undefined) return { doubt: `nothing in the volume has taken the place of ${part}` }
  if (other === undefined) return { path }
  return { doubt: `${quoteValue(path)} and ${quoteValue(other)} may have taken the place of ${part}` }
}

const MAX_LISTED_LINKS = 1000
const MAX_DIRENT_BLOCKS = 100
// include/linux/fs_types.h
const UNKNOWN_DIRENT_TYPE = 0
const LINK_DIRENT_TYPE = 10

function* listSymbolicLinks(inodes: Inodes, directory: Handle): Generator<{ name: string; target: string }> {
  for (let block = 0; block < MAX_DIRENT_BLOCKS; block++) {
    const entries = new DirentIterator(inodes.readEntries(directory))
    if (entries.bytes.length === 0) return
    while (entries.next()) {
      if (entries.type !== LINK_DIRENT_TYPE && entries.type !== UNKNOWN_DIRENT_TYPE) continue
      const name = Buffer.from(entries.name)
      const link = tolerateErrno('ENOENT', () => inodes.openEntry(directory, name))
      if (link === undefined) continue
      using _ = deferHandleClose(inodes, link)
      const target = tolerateErrno('EINVAL ENOENT', () => inodes.readLink(link))
      if (target !== undefined) yield { name: name.toString(), target: Buffer.from(target).toString() }
    }
  }
}
