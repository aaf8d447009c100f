import { waitFor } from '../host/back-off.ts'
import { withPath } from '../host/file-error.ts'
import { closing, type Handle, isDirectory, orClosed, unless } from '../host/host.ts'
import { containersDirectory, isContainerId } from '../store/container-record.ts'
import { orWarn, type Session } from '../store/session.ts'

// Where a runtime finds clones: a file system in memory that only root sees into, and that keeps to itself what is
// mounted on it. Below it a directory for each container, in that a mount for each of its clones.
const MOUNTS = Buffer.from('mounts')

type Node = Pick<Session, 'host'> & { config: Pick<Session['config'], 'stateDir'> }

/** Where the file system in memory is mounted that has the clones. */
export function standPath(node: Pick<Node, 'config'>): string {
  return `${containersDirectory(node)}/mounts`
}

/** Where the runtime finds a container's clone of this number. */
export function clonePath(node: Node, container: string, number: number): string {
  return `${standPath(node)}/${container}/${number}`
}

/** Whether a mount's source is a clone that was made for the container. */
export function isCloneSource(container: string, source: string): boolean {
  const [directory, name] = source.split('/').slice(-2)
  return directory === container && /^\d+$/.test(name ?? '')
}

/** One job at a time for a container. */
export async function holdContainer(session: Session, container: string): Promise<Disposable> {
  session.host.files.makeDirectory(containersDirectory(session))
  return waitFor(() => tryHoldContainer(session, container))
}

/** Undefined while a job is at work on it. */
export function tryHoldContainer(session: Session, container: string): Disposable | undefined {
  return tryHold(session, lockPath(session, container))
}

function tryHold(session: Node & Pick<Session, 'warn'>, path: string): Disposable | undefined {
  const lock = withPath('lock', path, () => session.host.tryLock(path))
  const release = () => withPath('remove', path, () => lock?.release(true))
  // What fails says nothing of the work that was done under the lock: reconcile removes the file.
  return lock && { [Symbol.dispose]: () => orWarn(session, 'could not give a lock back', release) }
}

const LOCK = /\.lock$/
const STAND = 'stand'

function lockPath(node: Node, name: string): string {
  return `${containersDirectory(node)}/${name}.lock`
}

/** The containers that have a lock's file: a job is at work on them, or one has died. */
export function lockedContainers({ host, config }: Node): string[] {
  const names = host.files.list(containersDirectory({ config })).filter((name) => LOCK.test(name))
  return names.map((name) => name.replace(LOCK, '')).filter((name) => name !== STAND && isContainerId(name))
}

/** A new directory for a container's clones. Its caller closes it. */
export async function makeContainerDirectory(session: Session, container: string): Promise<Handle> {
  const { inodes } = session.host
  session.host.files.makeDirectory(containersDirectory(session))
  // Nobody removes the stand, empty as it still is, before the directory is in it.
  using _lock = await waitFor(() => tryHold(session, lockPath(session, STAND)))
  const stand = openOrMakeStand(session)
  using _ = closing(inodes, stand)
  const name = Buffer.from(container)
  inodes.createDirectory(stand, name, 0o700)
  return inodes.openEntry(stand, name)
}

/** Call it under the stand's lock. */
function openOrMakeStand(session: Session): Handle {
  const { inodes, mounts } = session.host
  const parent = inodes.openTrusted(containersDirectory(session))
  using _parent = closing(inodes, parent)
  const there = openStand(session, parent)
  if (there !== undefined) return there
  unless('EEXIST', () => inodes.createDirectory(parent, MOUNTS, 0o700))
  const target = inodes.openEntry(parent, MOUNTS)
  using _target = closing(inodes, target)
  return orClosed(inodes, mounts.createTree('tmpfs', ['mode=0700']), (tree) => {
    mounts.attach(tree, target)
    keepToItself(session, tree)
    return tree
  })
}

function openStand(node: Node, parent: Handle): Handle | undefined {
  const { inodes } = node.host
  const isThere = unless('ENOENT', () => inodes.statMountPoint(parent, MOUNTS).mountRoot) ?? false
  if (!isThere) return undefined
  return orClosed(inodes, inodes.openEntry(parent, MOUNTS), (stand) => {
    // Whoever made it may have died just before.
    keepToItself(node, stand)
    return stand
  })
}

/** A mount that is attached where mounts are shared becomes shared itself: others would keep the clones busy. */
function keepToItself({ host }: Node, stand: Handle): void {
  host.mounts.setFlags(stand, { set: 0, clear: 0 })
}

/** Attaches a clone, or what else is finished, as this number of a container's. @param directory the container's */
export function attachClone({ host }: Node, directory: Handle, number: number, tree: Handle): void {
  const { inodes, mounts } = host
  const name = Buffer.from(String(number))
  if (isDirectory(inodes.statMountPoint(tree))) inodes.createDirectory(directory, name, 0)
  else inodes.createFile(directory, name, 0)
  const target = inodes.openEntry(directory, name)
  using _ = closing(inodes, target)
  mounts.attach(tree, target)
}

/**
 * Takes away all that stands for a container; nothing there is a success. What the container itself has stays. Asks
 * nothing of what is mounted.
 * @returns whether anything stood there
 */
export function takeDown(node: Node, container: string): boolean {
  const { inodes, mounts, files } = node.host
  using stand = openIfThere(node)
  if (stand === undefined) return false
  const name = Buffer.from(container)
  const directory = unless('ENOENT', () => inodes.openEntry(stand.handle, name))
  if (directory === undefined) return false
  using _ = closing(inodes, directory)
  for (const entry of files.list(`${standPath(node)}/${container}`)) {
    const number = Buffer.from(entry)
    while (inodes.statMountPoint(directory, number).mountRoot) mounts.detach(directory, number)
    if (isDirectory(inodes.statMountPoint(directory, number))) inodes.removeDirectory(directory, number)
    else inodes.removeFile(directory, number)
  }
  inodes.removeDirectory(stand.handle, name)
  return true
}

/** The containers for which anything stands. */
export function standing(node: Node): string[] {
  using stand = openIfThere(node)
  return stand === undefined ? [] : node.host.files.list(standPath(node)).sort()
}

/** Removes the stand where nothing is on it: the next container has it made again. */
export function removeEmptyStand(session: Node & Pick<Session, 'warn'>): void {
  const { inodes, mounts, files } = session.host
  const directory = containersDirectory(session)
  if (files.list(directory).length === 0) return
  using lock = tryHold(session, lockPath(session, STAND))
  if (lock === undefined || standing(session).length > 0) return
  const parent = inodes.openTrusted(directory)
  using _ = closing(inodes, parent)
  unless('ENOENT', () => {
    while (inodes.statMountPoint(parent, MOUNTS).mountRoot) mounts.detach(parent, MOUNTS)
    inodes.removeDirectory(parent, MOUNTS)
  })
}

function openIfThere(node: Node): ({ handle: Handle } & Disposable) | undefined {
  const { inodes } = node.host
  const directory = containersDirectory(node)
  const parent = unless('ENOENT', () => inodes.openTrusted(directory))
  if (parent === undefined) return undefined
  using _ = closing(inodes, parent)
  if (!unless('ENOENT', () => inodes.statMountPoint(parent, MOUNTS).mountRoot)) return undefined
  const handle = inodes.openEntry(parent, MOUNTS)
  return { handle, ...closing(inodes, handle) }
}
