import { afterAll, beforeAll, describe, it } from 'vitest'
import { addSkipReason } from '../../helpers/needs.ts'
import { type Server, startGanesha } from '../../volume/servers.ts'
import { mountTemporaryDisk } from '../network/disk.ts'
import { createOutageSwitch, OUTAGES, type Outage } from '../network/faults.ts'
import {
  INTERRUPTED_RESTORE_TITLE,
  INTERRUPTED_WALK_TITLE,
  interruptRestore,
  interruptWalk,
  MANY_FILES,
  mountDuringOutage,
  type OutageVolume,
  unmountDuringOutage,
} from '../network/interrupted.ts'
import { createServerNetwork, IN_SERVER_NETWORK, removeServerNetwork, SERVER_ADDRESS } from '../network/namespace.ts'
import { formatNfsOptions, makeFiles, NFS_VERSIONS, type NfsVersion } from '../network/nfs-server.ts'
import { ServerNode } from '../network/node.ts'

const MOUNT_PORT = 20049
/** An unmount of a volume without a restore waits for 5 s, the kernel alone for up to 156. A guest of 6.1 takes 10 s more. */
const UNMOUNT_LIMIT_SECONDS = 25

let unmountDisk: () => void
beforeAll(async () => {
  unmountDisk = mountTemporaryDisk()
  await createServerNetwork()
})
afterAll(() => {
  removeServerNetwork()
  unmountDisk()
})

/** A node, a server of its own with a volume, and a switch for the server's outage, which ends with the test at the latest. */
async function prepare(version: NfsVersion, outage: Outage, files: number): Promise<OutageVolume> {
  const server: Server = await startGanesha('no_root_squash', IN_SERVER_NETWORK, MOUNT_PORT)
  makeFiles(`${server.shared}/volume`, files)
  const source = `${SERVER_ADDRESS}:${version === '3' ? server.shared : '/export'}/volume`
  const node = new ServerNode('nfs')
  return {
    node,
    path: `${server.shared}/volume`,
    options: { source, mountOptions: formatNfsOptions(version, server.port, MOUNT_PORT) },
    ...createOutageSwitch(outage, server.pid),
  }
}

describe.each(NFS_VERSIONS.flatMap((version) => OUTAGES.map((outage) => [version, outage] as const)))(
  'NFS %s with %s',
  (version, outage) => {
    it('a mount fails within its limit, and the next one succeeds once the server responds', async () =>
      mountDuringOutage(await prepare(version, outage, 3), /mount\.nfs|does not respond/))

    it('a repeated mount, heal and an unmount of a mounted volume end within their limits', async () =>
      unmountDuringOutage(await prepare(version, outage, 3), UNMOUNT_LIMIT_SECONDS))

    // Its answers to a walk over version 4.2 are ESTALE from the first one on. The kernel's server has no such fault: nfs.vm.ts.
    const canWalk = version === '3'
    const reason = canWalk ? '' : 'nfs-ganesha reports ESTALE to a walk over NFS 4.2'

    it.skipIf(!canWalk)(addSkipReason(INTERRUPTED_WALK_TITLE, reason), async () =>
      interruptWalk(await prepare(version, outage, MANY_FILES)),
    )

    it.skipIf(!canWalk)(addSkipReason(INTERRUPTED_RESTORE_TITLE, reason), async () =>
      interruptRestore(await prepare(version, outage, MANY_FILES)),
    )
  },
)
