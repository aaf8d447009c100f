import { errorCode, type Handle, type Host, isDirectory, type Name } from '../../host/host.ts'
import { waitFor } from '../../host/wait-for.ts'
import { NOSYMFOLLOW, RDONLY } from '../../mount-table/flags.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { PRIVATE } from '../../request/defaults.ts'
import type { Session } from '../../store/session.ts'
import type { MountContext } from './kind.ts'

const MOUNT = Buffer.from('mount')
const SOURCE = Buffer.from('source')

/** What a helper program finds beside the directory it mounts on. All of it is gone when the call ends. */
export interface Stage {
  /** Puts bytes into memory, in a file that only root can read. @returns its path */
  put(name: string, bytes: Uint8Array): string
  /** Mounts what was opened: whoever exchanges its name meanwhile exchanges nothing. @returns its path */
  show(source: Handle, readOnly: boolean): string
}

/** Of which the boot has only one. */
export function newStagingName(): string {
  return `${process.pid}-${process.hrtime.bigint().toString(36)}`
}

/** All processes that were started for one of them: they serve mounts, or are about to make one. */
export function stagedProcesses({ daemons }: Host, stateDir: string): number[] {
  return daemons.below(stagingDirectory(stateDir))
}

/** Ends all that was started for a staging directory. */
export function killStaged({ daemons }: Host, stateDir: string, staging: string): void {
  daemons.kill(`${stagingDirectory(stateDir)}/${staging}`)
}

/** Where a helper program mounts: its daemon has this path among its arguments for as long as it lives. */
export function stagedMount(stateDir: string, staging: string): string {
  return `${stagingDirectory(stateDir)}/${staging}/mount`
}

function stagingDirectory(stateDir: string): string {
  return `${stateDir}/${PRIVATE.staging}`
}

/**
 * Has a helper program mount on a private empty directory, and takes the mount from there: nobody else ever sees it
 * before it is finished.
 * @returns a detached mount
 * @throws {Refusal} where the helper ends without having mounted; whatever `mountOn` throws. Nothing is left then
 */
export async function mountStaged(
  { host, stateDir, staging }: MountContext,
  mountOn: (directory: string, stage: Stage) => Promise<void>,
): Promise<Handle> {
  const place = stagingDirectory(stateDir)
  const name = Buffer.from(staging)
  host.files.makeDirectory(place)
  // The name is this call's alone: whoever has its lock is a sweep that looks at it, for a moment.
  const lock = await waitFor(() => host.tryLock(`${place}/${staging}.lock`))
  const parent = host.inodes.openTrusted(place)
  let stage: Handle | undefined
  try {
    stage = openStage(host, parent, name)
    await mountOn(stagedMount(stateDir, staging), furnish(host, stage, `${place}/${staging}`))
    return take(host, stage)
  } catch (error) {
    // A helper may have left a daemon without a mount.
    killStaged(host, stateDir, staging)
    throw error
  } finally {
    try {
      if (stage !== undefined) host.inodes.close(stage)
      clear(host, parent, name)
    } finally {
      host.inodes.close(parent)
      lock.release(true)
    }
  }
}

/** A file system of its own, in memory: what is mounted on it does not spread, and one umount takes it all away. */
function openStage(host: Host, parent: Handle, name: Name): Handle {
  const { inodes, mounts } = host
  inodes.createDirectory(parent, name, 0)
  const target = inodes.openEntry(parent, name)
  const tree = mounts.createTree('tmpfs', ['mode=0700', 'size=4m'])
  try {
    mounts.attach(tree, target)
    // A mount that is attached where mounts are shared becomes shared itself.
    mounts.setFlags(tree, { set: 0, clear: 0 })
    inodes.createDirectory(tree, MOUNT, 0)
    return tree
  } catch (error) {
    inodes.close(tree)
    throw error
  } finally {
    inodes.close(target)
  }
}

function furnish(host: Host, tree: Handle, path: string): Stage {
  const { inodes, mounts } = host
  return {
    put(name, bytes) {
      inodes.createFile(tree, Buffer.from(name), 0o600)
      host.files.write(`${path}/${name}`, bytes)
      return `${path}/${name}`
    },

    show(source, readOnly) {
      if (isDirectory(inodes.stat(source))) inodes.createDirectory(tree, SOURCE, 0)
      else inodes.createFile(tree, SOURCE, 0)
      const clone = mounts.cloneTree(source)
      const target = inodes.openEntry(tree, SOURCE)
      try {
        // A daemon opens by name, as root, what the volume's users may exchange for a link: through here none is followed.
        mounts.setFlags(clone, { set: NOSYMFOLLOW | (readOnly ? RDONLY : 0), clear: 0 })
        mounts.attach(clone, target)
      } finally {
        inodes.close(target)
        inodes.close(clone)
      }
      return `${path}/source`
    },
  }
}

function take(host: Host, stage: Handle): Handle {
  if (!host.inodes.statMountPoint(stage, MOUNT).mountRoot) {
    throw new Refusal('the helper program ended without an error, but has mounted nothing')
  }
  const mounted = host.inodes.openEntry(stage, MOUNT)
  try {
    return host.mounts.cloneTree(mounted)
  } finally {
    host.inodes.close(mounted)
  }
}

/** Asks nothing of what is mounted inside: its daemon may be dead, or hang. */
function clear(host: Host, parent: Handle, name: Name): void {
  try {
    while (host.inodes.statMountPoint(parent, name).mountRoot) host.mounts.detach(parent, name)
    host.inodes.removeDirectory(parent, name)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

function isThere(host: Host, parent: Handle, name: Name): boolean {
  try {
    host.inodes.statMountPoint(parent, name)
    return true
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return false
  }
}

/** Stages that no call is at work on. */
export function staleStages(host: Host, stateDir: string): string[] {
  const place = stagingDirectory(stateDir)
  return stages(host, place).filter((name) => !host.isLocked(`${place}/${name}.lock`))
}

function stages(host: Host, place: string): string[] {
  return [...new Set(host.files.list(place).map((name) => name.replace(/\.lock$/, '')))]
}

/** Removes what calls that were killed have left in the staging directory. */
export function sweepStaging(host: Host, stateDir: string): void {
  const place = stagingDirectory(stateDir)
  const names = stages(host, place)
  if (names.length === 0) return
  const parent = host.inodes.openTrusted(place)
  try {
    for (const name of names) {
      const lock = host.tryLock(`${place}/${name}.lock`)
      // A call is at work there.
      if (!lock) continue
      try {
        // A call that has ended since the names were read has removed its directory: its daemon serves a pod.
        if (!isThere(host, parent, Buffer.from(name))) continue
        // A helper may still be at work for a call that is dead.
        killStaged(host, stateDir, name)
        clear(host, parent, Buffer.from(name))
      } finally {
        lock.release(true)
      }
    }
  } finally {
    host.inodes.close(parent)
  }
}

/** Removes what killed calls were just having mounted; a call that is not about them goes on whatever happens. */
export function sweepStages({ host, config, warn }: Session): void {
  try {
    sweepStaging(host, config.stateDir)
  } catch (error) {
    warn(`could not remove what a killed call has left: ${(error as Error).message}`)
  }
}
