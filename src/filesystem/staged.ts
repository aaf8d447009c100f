import type { Handle } from '../host/host.ts'
import type { Making } from './kind.ts'

/** STAND-IN, replaced by the real one: mounts on a private directory and takes the mount from there. */
export async function mountStaged(
  { host, stateDir }: Making,
  mountOn: (directory: string) => Promise<void>,
): Promise<Handle> {
  const directory = `${stateDir}/staging/${process.pid}-${performance.now()}`
  host.files.makeDirectory(directory)
  const target = host.inodes.openTrusted(directory)
  try {
    await mountOn(directory)
    const mounted = host.inodes.openTrusted(directory)
    try {
      return host.mounts.cloneTree(mounted)
    } finally {
      host.inodes.close(mounted)
    }
  } finally {
    const parent = host.inodes.openTrusted(`${stateDir}/staging`)
    const name = Buffer.from(directory.slice(directory.lastIndexOf('/') + 1))
    if (host.inodes.statMountPoint(parent, name).mountRoot) host.mounts.detach(parent, name)
    host.inodes.close(target)
    host.inodes.removeDirectory(parent, name)
    host.inodes.close(parent)
  }
}
