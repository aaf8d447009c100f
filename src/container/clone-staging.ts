import { deferHandleClose, type Handle, isDirectory, tolerateErrno, useHandleOrClose } from '../kernel/host.ts'
import { addPathToErrors } from '../kernel/system-error.ts'
import { retryUntilDefined } from '../kernel/waiting.ts'
import { isContainerId, locateContainerRecords } from '../state/container-record.ts'
import { type Session, warnOnFailure } from '../state/session.ts'

// The runtime finds clones on a tmpfs that only root can read. It is a private mount, with a directory for each container
// and a mount in it for each of the container's clones.
const STAGING_DIRECTORY_NAME = Buffer.from('mounts')

type StagingSession = Pick<Session, 'host'> & { config: Pick<Session['config'], 'stateDir'> }

export function resolveCloneStagingPath(node: Pick<StagingSession, 'config'>): string {
  return `${locateContainerRecords(node)}/mounts`
}

/** Resolves the path of a clone, which the runtime binds. */
export function resolveClonePath(node: StagingSession, container: string, number: number): string {
  return `${resolveCloneStagingPath(node)}/${container}/${number}`
}

/** Returns whether a mount's source is a clone that was made for the container. */
export function isCloneSource(container: string, source: string): boolean {
  const [directory, name] = source.split('/').slice(-2)
  return directory === container && /^\d+$/.test(name ?? '')
}

export async function lockContainer(session: Session, container: string): Promise<Disposable> {
  session.host.files.makeDirectory(locateContainerRecords(session))
  return retryUntilDefined(() => tryLockContainer(session, container))
}

export function tryLockContainer(session: Session, container: string): Disposable | undefined {
  return tryLockStagingFile(session, resolveContainerLockPath(session, container))
}

function tryLockStagingFile(session: StagingSession & Pick<Session, 'warn'>, path: string): Disposable | undefined {
  const lock = addPathToErrors('lock', path, () => session.host.tryLock(path))
  const release = () => addPathToErrors('remove', path, () => lock?.release(true))
  // A lock that cannot be removed is no failure of the task that held it. `reconcileContainers` removes the file.
  return lock && { [Symbol.dispose]: () => warnOnFailure(session, 'could not give a lock back', release) }
}

const LOCK_FILE_PATTERN = /\.lock$/
const STAGING_LOCK_NAME = 'stand'

function resolveContainerLockPath(node: StagingSession, name: string): string {
  return `${locateContainerRecords(node)}/${name}.lock`
}

/** Lists containers that have a lock file, because a task holds it or has crashed. */
export function listLockedContainers({ host, config }: StagingSession): string[] {
  const names = host.files.list(locateContainerRecords({ config })).filter((name) => LOCK_FILE_PATTERN.test(name))
  return names
    .map((name) => name.replace(LOCK_FILE_PATTERN, ''))
    .filter((name) => name !== STAGING_LOCK_NAME && isContainerId(name))
}

/** Creates a directory for a container's clones. The caller closes it. */
export async function createContainerDirectory(session: Session, container: string): Promise<Handle> {
  const { inodes } = session.host
  session.host.files.makeDirectory(locateContainerRecords(session))
  // The lock keeps another task from removing the staging mount while it is still empty.
  using _lock = await retryUntilDefined(() =>
    tryLockStagingFile(session, resolveContainerLockPath(session, STAGING_LOCK_NAME)),
  )
  const staging = openOrCreateStagingMount(session)
  using _ = deferHandleClose(inodes, staging)
  const name = Buffer.from(container)
  inodes.createDirectory(staging, name, 0o700)
  return inodes.openEntry(staging, name)
}

function openOrCreateStagingMount(session: Session): Handle {
  const { inodes, mounts } = session.host
  const parent = inodes.openTrusted(locateContainerRecords(session))
  using _parent = deferHandleClose(inodes, parent)
  const existing = openStagingMount(session, parent)
  // The task that mounted it may have crashed before it made the mount private.
  if (existing !== undefined) {
    return useHandleOrClose(inodes, existing, (staging) => {
      makeStagingMountPrivate(session, staging)
      return staging
    })
  }
  tolerateErrno('EEXIST', () => inodes.createDirectory(parent, STAGING_DIRECTORY_NAME, 0o700))
  const target = inodes.openEntry(parent, STAGING_DIRECTORY_NAME)
  using _target = deferHandleClose(inodes, target)
  return useHandleOrClose(inodes, mounts.createTree('tmpfs', ['mode=0700']), (tree) => {
    mounts.attach(tree, target)
    makeStagingMountPrivate(session, tree)
    return tree
  })
}

function openStagingMount({ host: { inodes } }: StagingSession, parent: Handle): Handle | undefined {
  const isMounted = tolerateErrno('ENOENT', () => inodes.statMountPoint(parent, STAGING_DIRECTORY_NAME).mountRoot)
  return isMounted ? inodes.openEntry(parent, STAGING_DIRECTORY_NAME) : undefined
}

/** A mount that is attached below a shared mount becomes shared. Copies in other namespaces would keep the clones busy. */
function makeStagingMountPrivate({ host }: StagingSession, staging: Handle): void {
  host.mounts.setFlags(staging, { set: 0, clear: 0 })
}

/** Attaches a finished clone in the container's directory, named by its index. */
export function attachClone({ host }: StagingSession, directory: Handle, number: number, tree: Handle): void {
  const { inodes, mounts } = host
  const name = Buffer.from(String(number))
  if (isDirectory(inodes.statMountPoint(tree))) inodes.createDirectory(directory, name, 0)
  else inodes.createFile(directory, name, 0)
  const target = inodes.openEntry(directory, name)
  using _ = deferHandleClose(inodes, target)
  mounts.attach(tree, target)
}

/**
 * Removes a container's clones from the staging mount, if there are any. The container's own mounts stay. Sends no request to
 * the mounted file systems.
 * @returns whether the container had a directory there
 */
export function removeStagedClones(node: StagingSession, container: string): boolean {
  const { inodes, mounts, files } = node.host
  using staging = findStagingMount(node)
  if (staging === undefined) return false
  const name = Buffer.from(container)
  const directory = tolerateErrno('ENOENT', () => inodes.openEntry(staging.handle, name))
  if (directory === undefined) return false
  using _ = deferHandleClose(inodes, directory)
  for (const entry of files.list(`${resolveCloneStagingPath(node)}/${container}`)) {
    const number = Buffer.from(entry)
    while (inodes.statMountPoint(directory, number).mountRoot) mounts.detach(directory, number)
    if (isDirectory(inodes.statMountPoint(directory, number))) inodes.removeDirectory(directory, number)
    else inodes.removeFile(directory, number)
  }
  inodes.removeDirectory(staging.handle, name)
  return true
}

export function listStagedContainers(node: StagingSession): string[] {
  using staging = findStagingMount(node)
  return staging === undefined ? [] : node.host.files.list(resolveCloneStagingPath(node)).sort()
}

/** Removes the staging mount if it is empty. The next container mounts it again. */
export function removeEmptyStagingMount(session: StagingSession & Pick<Session, 'warn'>): void {
  const { inodes, mounts, files } = session.host
  const directory = locateContainerRecords(session)
  if (files.list(directory).length === 0) return
  using lock = tryLockStagingFile(session, resolveContainerLockPath(session, STAGING_LOCK_NAME))
  if (lock === undefined || listStagedContainers(session).length > 0) return
  const parent = inodes.openTrusted(directory)
  using _ = deferHandleClose(inodes, parent)
  tolerateErrno('ENOENT', () => {
    while (inodes.statMountPoint(parent, STAGING_DIRECTORY_NAME).mountRoot)
      mounts.detach(parent, STAGING_DIRECTORY_NAME)
    inodes.removeDirectory(parent, STAGING_DIRECTORY_NAME)
  })
}

function findStagingMount(node: StagingSession): ({ handle: Handle } & Disposable) | undefined {
  const { inodes } = node.host
  const directory = locateContainerRecords(node)
  const parent = tolerateErrno('ENOENT', () => inodes.openTrusted(directory))
  if (parent === undefined) return undefined
  using _ = deferHandleClose(inodes, parent)
  const handle = openStagingMount(node, parent)
  return handle === undefined ? undefined : { handle, ...deferHandleClose(inodes, handle) }
}
