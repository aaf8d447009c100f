import * as fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addSkipReason } from '../../helpers/needs.ts'
import { type Server, startGanesha } from '../../volume/servers.ts'
import { mountTemporaryDisk } from '../network/disk.ts'
import { createOutageSwitch, expectNothingLeft, OUTAGES, type Outage, waitUntil } from '../network/faults.ts'
import { createServerNetwork, IN_SERVER_NETWORK, removeServerNetwork, SERVER_ADDRESS } from '../network/namespace.ts'
import { formatNfsOptions, makeFiles, NFS_VERSIONS, type NfsVersion } from '../network/nfs-server.ts'
import { GROUP, listOwnership, ServerNode, SUCCESS } from '../network/node.ts'

const MOUNT_PORT = 20049
const WALKED = { ownership: 'walk', restoreOnUnmount: 'true' }
const MANY = 3000
/** What a call may take while the server does not respond: its limit of 10 s for programs, of some 40 s for a walk. */
const LIMIT_SECONDS = 100
/** The kernel alone waits for 18 s on Linux 7.2; an unmount of a volume without a restore waits for 5. */
const UNMOUNT_LIMIT_SECONDS = 15

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
async function prepare(version: NfsVersion, outage: Outage, files: number) {
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

const hasGroup = (path: string, group: number) =>
  fs.readdirSync(path).some((name) => fs.statSync(`${path}/${name}`).gid === group)

describe.each(NFS_VERSIONS.flatMap((version) => OUTAGES.map((outage) => [version, outage] as const)))(
  'NFS %s with %s',
  (version, outage) => {
    it('a mount fails within its limit, and the next one succeeds once the server responds', async () => {
      const { node, options, stop, restart } = await prepare(version, outage, 3)
      stop()
      const { status, message, seconds } = await node.mount('a', options)
      expect([status, message]).toEqual(['Failure', expect.stringMatching(/mount\.nfs|does not respond/)])
      expect(seconds).toBeLessThan(LIMIT_SECONDS)
      restart()
      expect(await node.mount('a', options)).toMatchObject(SUCCESS)
      expect(await node.unmount('a')).toMatchObject(SUCCESS)
      await expectNothingLeft(node, 'a')
    })

    it('a repeated mount, heal and an unmount of a mounted volume end within their limits', async () => {
      const { node, options, stop, restart } = await prepare(version, outage, 3)
      expect(await node.mount('a', options)).toMatchObject(SUCCESS)
      stop()
      const again = await node.mount('a', options)
      expect(again.seconds).toBeLessThan(LIMIT_SECONDS)
      console.log(node.run('heal').text)
      const { status, seconds } = await node.unmount('a')
      expect(status).toBe('Success')
      expect(seconds).toBeLessThan(UNMOUNT_LIMIT_SECONDS)
      restart()
      await expectNothingLeft(node, 'a')
    })

    // Its answers to a walk over version 4.2 are ESTALE from the first one on. The kernel's server has no such fault.
    const canWalk = version === '3'
    const reason = canWalk ? '' : 'nfs-ganesha reports ESTALE to a walk over NFS 4.2'

    it.skipIf(!canWalk)(
      addSkipReason(
        'a walk that is interrupted fails within its limit, and the next mount and unmount complete it',
        reason,
      ),
      async () => {
        const { node, path, options, stop, restart } = await prepare(version, outage, MANY)
        const before = listOwnership(path)
        const walk = node.mount('a', { ...options, ...WALKED })
        await waitUntil('the walk changes no file', () => hasGroup(path, GROUP))
        stop()
        const { status, message, seconds } = await walk
        expect([status, message]).toEqual(['Failure', expect.stringMatching(/does not respond|failed/)])
        expect(seconds).toBeLessThan(LIMIT_SECONDS)
        restart()
        expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
        expect(await node.unmount('a')).toMatchObject(SUCCESS)
        expect(listOwnership(path)).toEqual(before)
        await expectNothingLeft(node, 'a')
      },
    )

    it.skipIf(!canWalk)(
      addSkipReason('a restore that is interrupted is reported by status and gc, and runs at the next unmount', reason),
      async () => {
        const { node, path, options, stop, restart } = await prepare(version, outage, MANY)
        const before = listOwnership(path)
        expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
        const restore = node.unmount('a')
        await waitUntil('the restore changes no file', () => hasGroup(path, 100))
        stop()
        const { seconds } = await restore
        expect(seconds).toBeLessThan(LIMIT_SECONDS)
        const status = node.run('status').text
        console.log(status, node.run('gc', '--dry-run').text, node.run('heal').text)
        expect(status).toContain(`mount ${options.source}`)
        restart()
        expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
        expect(await node.unmount('a')).toMatchObject(SUCCESS)
        expect(listOwnership(path)).toEqual(before)
        await expectNothingLeft(node, 'a')
      },
    )
  },
)
