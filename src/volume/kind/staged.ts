import { PRIVATE_STATE_DIRECTORIES } from '../../config/defaults.ts'
import { formatSource } from '../../config/source.ts'
import { Refusal } from '../../errors/refusal.ts'
import type { HelperInvocation } from '../../kernel/helpers.ts'
import {
  deferHandleClose,
  type EntryName,
  type Handle,
  type Host,
  isDirectory,
  type ProcessId,
  tolerateErrno,
  useHandleOrClose,
} from '../../kernel/host.ts'
import { MOUNT_ATTR_NOSYMFOLLOW, MOUNT_ATTR_RDONLY } from '../../kernel/mount-table/mount-flags.ts'
import { retryUntilDefined } from '../../kernel/waiting.ts'
import { type Session, warnOnFailure } from '../../state/session.ts'
import type { MountContext } from './kind.ts'
import { filterFileSystemOptions } from './options.ts'

const STAGED_MOUNT_NAME = Buffer.from('mount')
const STAGED_SOURCE_NAME = Buffer.from('source')

/** Files and mounts for a helper program, next to its mount directory. They are removed when the call ends. */
export interface HelperStage {
  /** Writes bytes to a file in memory that only root can read. @returns its path */
  put(name: string, bytes: Uint8Array): string
  /** Mounts an opened source, so that a later replacement of its name has no effect. @returns its path */
  show(source: Handle, readOnly: boolean): string
}

export function createStagingName(): string {
  return `${process.pid}-${process.hrtime.bigint().toString(36)}`
}

/** Lists the processes of all staging directories: they serve a mount, or are about to make one. */
export function listAllStagedProcesses({ daemons }: Host, stateDir: string): ProcessId[] {
  return daemons.below(resolveStagingDirectory(stateDir))
}

export function listStagedProcesses({ daemons }: Host, stateDir: string, staging: string): ProcessId[] {
  return daemons.below(`${resolveStagingDirectory(stateDir)}/${staging}`)
}

/** Ends the processes of a staging directory. @param known restricts them to recorded ones */
export function killStagedProcesses(
  { daemons }: Host,
  stateDir: string,
  staging: string,
  known?: readonly ProcessId[] | undefined,
): void {
  daemons.kill(`${resolveStagingDirectory(stateDir)}/${staging}`, known)
}

/** Returns the mount directory of a helper program. The arguments of its daemon contain this path until it ends. */
export function formatStagedMountPath(stateDir: string, staging: string): string {
  return `${resolveStagingDirectory(stateDir)}/${staging}/mount`
}

function resolveStagingDirectory(stateDir: string): string {
  return `${stateDir}/${PRIVATE_STATE_DIRECTORIES.staging}`
}

/**
 * Runs a helper program that mounts on a private empty directory, and takes the mount from there: no other process sees it
 * before it is complete.
 * @returns a detached mount
 * @throws {Refusal} if the helper ends without a mount; every error of `mountOn`. Nothing remains in these cases
 */
export async function mountOnStage(
  { host, stateDir, staging }: MountContext,
  mountOn: (directory: string, stage: HelperStage) => Promise<void>,
): Promise<Handle> {
  const place = resolveStagingDirectory(stateDir)
  const name = Buffer.from(staging)
  host.files.makeDirectory(place)
  // Only this call uses the name, so another owner of the lock is a sweep that checks it briefly.
  const lock = await retryUntilDefined(() => host.tryLock(`${place}/${staging}.lock`))
  try {
    const parent = host.inodes.openTrusted(place)
    using _parent = deferHandleClose(host.inodes, parent)
    try {
      const stage = openMountStage(host, parent, name)
      using _stage = deferHandleClose(host.inodes, stage)
      await mountOn(formatStagedMountPath(stateDir, staging), createMountStage(host, stage, `${place}/${staging}`))
      return takeStagedMount(host, stage)
    } catch (error) {
      // A helper may have left a daemon without a mount.
      killStagedProcesses(host, stateDir, staging)
      throw error
    } finally {
      clearMountStage(host, parent, name)
    }
  } finally {
    lock.release(true)
  }
}

/** Mounts a tmpfs as the stage: mounts on it do not propagate, and one umount removes all of them. */
function openMountStage({ inodes, mounts }: Host, parent: Handle, name: EntryName): Handle {
  inodes.createDirectory(parent, name, 0)
  const target = inodes.openEntry(parent, name)
  using _ = deferHandleClose(inodes, target)
  return useHandleOrClose(inodes, mounts.createTree('tmpfs', ['mode=0700', 'size=4m']), (tree) => {
    mounts.attach(tree, target)
    // A mount becomes shared if it is attached below a shared mount.
    mounts.setFlags(tree, { set: 0, clear: 0 })
    inodes.createDirectory(tree, STAGED_MOUNT_NAME, 0)
    return tree
  })
}

function createMountStage({ inodes, mounts, files }: Host, tree: Handle, path: string): HelperStage {
  return {
    put(name, bytes) {
      inodes.createFile(tree, Buffer.from(name), 0o600)
      files.write(`${path}/${name}`, bytes)
      return `${path}/${name}`
    },

    show(source, readOnly) {
      if (isDirectory(inodes.stat(source))) inodes.createDirectory(tree, STAGED_SOURCE_NAME, 0)
      else inodes.createFile(tree, STAGED_SOURCE_NAME, 0)
      const clone = mounts.cloneTree(source)
      using _clone = deferHandleClose(inodes, clone)
      const target = inodes.openEntry(tree, STAGED_SOURCE_NAME)
      using _target = deferHandleClose(inodes, target)
      // A daemon opens names as root, and the volume's users may replace them by links: the mount follows none.
      mounts.setFlags(clone, { set: MOUNT_ATTR_NOSYMFOLLOW | (readOnly ? MOUNT_ATTR_RDONLY : 0), clear: 0 })
      mounts.attach(clone, target)
      return `${path}/source`
    },
  }
}

function takeStagedMount({ inodes, mounts }: Host, stage: Handle): Handle {
  if (!inodes.statMountPoint(stage, STAGED_MOUNT_NAME).mountRoot) {
    throw Refusal.of('program-failed', 'the helper program ended without an error, but has mounted nothing')
  }
  const mounted = inodes.openEntry(stage, STAGED_MOUNT_NAME)
  using _ = deferHandleClose(inodes, mounted)
  return mounts.cloneTree(mounted)
}

/** Removes a stage without a request to the mount inside, whose daemon may have crashed or hang. */
function clearMountStage({ inodes, mounts }: Host, parent: Handle, name: EntryName): void {
  tolerateErrno('ENOENT', () => {
    while (inodes.statMountPoint(parent, name).mountRoot) mounts.detach(parent, name)
    inodes.removeDirectory(parent, name)
  })
}

export function listStaleStages(host: Host, stateDir: string): string[] {
  const place = resolveStagingDirectory(stateDir)
  return listStageNames(host, place).filter((name) => !host.isLocked(`${place}/${name}.lock`))
}

function listStageNames(host: Host, place: string): string[] {
  return [...new Set(host.files.list(place).map((name) => name.replace(/\.lock$/, '')))]
}

/** Unmounts staging mounts of crashed calls. Failures are logged, because the current call does not depend on them. */
export function unmountStaleStages(session: Pick<Session, 'host' | 'config' | 'warn'>): void {
  const { host, config } = session
  warnOnFailure(session, 'could not remove the mounts of a killed call', () => {
    const place = resolveStagingDirectory(config.stateDir)
    const names = listStageNames(host, place)
    if (names.length === 0) return
    const parent = host.inodes.openTrusted(place)
    using _ = deferHandleClose(host.inodes, parent)
    for (const name of names) {
      const lock = host.tryLock(`${place}/${name}.lock`)
      // A call uses the stage.
      if (!lock) continue
      try {
        unmountStaleStage(host, config.stateDir, parent, name)
      } finally {
        lock.release(true)
      }
    }
  })
}

function unmountStaleStage(host: Host, stateDir: string, parent: Handle, staging: string): void {
  const name = Buffer.from(staging)
  // A call that has ended since the names were read has removed its directory: its daemon serves a pod.
  if (tolerateErrno('ENOENT', () => host.inodes.statMountPoint(parent, name)) === undefined) return
  // A helper of a crashed call may still run.
  killStagedProcesses(host, stateDir, staging)
  clearMountStage(host, parent, name)
}

/** A server decides about its files, but must not grant privileges on this node. */
export const UNPRIVILEGED_MOUNT_OPTIONS = ['nosuid', 'nodev']

/** Mounts the source by mount.<fsType>. @param options added to those of the pod's author */
export function mountRemoteSource(
  context: MountContext,
  options: string[],
  more: Partial<HelperInvocation>,
): Promise<Handle> {
  const { host, request, timeoutSeconds, secrets } = context
  const all = [...filterFileSystemOptions(request.mountOptions), ...options, ...(request.readOnly ? ['ro'] : [])]
  return mountOnStage(context, (directory) =>
    host.helpers.run({
      program: `mount.${request.fsType}`,
      args: [formatSource(request.source) ?? '', directory, '-o', all.join(',')],
      timeoutSeconds,
      secrets: [...secrets.values()],
      ...more,
    }),
  )
}
