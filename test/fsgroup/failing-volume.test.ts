import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cannotServe } from '../helpers/fuse-node.ts'
import { type HangingServer, spawnHangingServer } from '../helpers/hanging-process.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'

const cannotMount = cannotServe()
const SETATTR = '4'
const ERRNOS = { EIO: 5, EACCES: 13, EROFS: 30, ESTALE: 116, EUCLEAN: 117, EDQUOT: 122 }
const ON_DISK = [0, 0, 0]

describe.skipIf(cannotMount !== '')(
  `a walk of a volume whose server refuses changes${cannotMount && ` (skipped: ${cannotMount})`}`,
  () => {
    let node: BinaryNode
    let served: HangingServer
    let source: string
    beforeEach(async () => {
      node = new BinaryNode()
      source = `${node.volumes}/served`
      served = await spawnHangingServer(source, `${node.top}/order`, SETATTR, 2)
    })
    afterEach(() => {
      execFileSync('umount', ['-l', source])
      served.server.kill('SIGKILL')
    })

    const directory = () => node.podDirectory('a')
    const groups = () => ['.', 'file', 'file0'].map((name) => fs.statSync(`${source}/${name}`).gid)
    const mount = () =>
      node.call(
        'mount',
        directory(),
        JSON.stringify({
          source,
          ownership: 'walk',
          restoreOnUnmount: 'true',
          'kubernetes.io/mounterArgs.FsGroup': '2000',
        }),
      )

    it.each<[keyof typeof ERRNOS, string]>([
      ['ESTALE', '(fchownat an open handle: ESTALE): repair its server; if another client deletes'],
      ['EIO', "EIO): check the node's kernel log, and its disk, daemon or server [volume-failed]"],
      ['EACCES', 'EACCES): allow it in the policy of SELinux or AppArmor, whose denial is in the audit log'],
      ['EUCLEAN', "EUCLEAN): check the node's kernel log, and repair the file system [volume-failed]"],
      ['EROFS', 'read-only: have its server export it for writing'],
      ['EDQUOT', 'over quota: make room in the quota'],
    ])('by %s is refused with what to repair, and the next mount completes it', async (code, words) => {
      served.hang(`error ${ERRNOS[code]}`)
      expect(await mount()).toMatchObject({ status: 'Failure', message: expect.stringContaining(words) })
      expect(node.layers('a')).toEqual([])
      expect(groups()).toEqual(ON_DISK)
      served.resume()
      expect(await mount()).toEqual({ status: 'Success' })
      expect(groups()).toEqual([2000, 2000, 2000])
      expect(await node.call('unmount', directory())).toEqual({ status: 'Success' })
      expect(groups()).toEqual(ON_DISK)
    })
  },
)
