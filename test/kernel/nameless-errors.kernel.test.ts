import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { openMountPoint, queryMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { type HangingServer, spawnHangingServer } from '../helpers/hanging-process.ts'

const cannotMount = cannotServe()
const GETATTR = '3'
const [ESTALE, EDQUOT, EUCLEAN] = [116, 122, 117]

describe.skipIf(cannotMount !== '')(
  `an error of the kernel that libuv has no name for${cannotMount && ` (skipped: ${cannotMount})`}`,
  () => {
    let top: string
    let mounted: HangingServer
    beforeEach(async () => {
      top = fs.mkdtempSync(`${tmpdir()}/modekeep-errno-`)
      mounted = await spawnHangingServer(`${top}/v`, `${top}/order`, GETATTR, 1)
    })
    afterEach(() => {
      execFileSync('umount', ['-l', `${top}/v`])
      mounted.server.kill('SIGKILL')
      fs.rmSync(top, { recursive: true, force: true })
    })

    it('makes a mount broken if its server returns that its handle is stale', () => {
      using point = openMountPoint(linuxHost, `${top}/v`)
      if (point === undefined) throw new Error('no mount point')
      expect(queryMountPoint(linuxHost, point, false)).toMatchObject({ mountRoot: true })
      mounted.hang(`error ${ESTALE}`)
      expect(queryMountPoint(linuxHost, point, false)).toBe('broken')
    })

    it.each([
      [ESTALE, 'ESTALE', 'remove the cause'],
      [EDQUOT, 'EDQUOT', 'raise the quota of its file system'],
      [EUCLEAN, 'EUCLEAN', 'repair its file system'],
    ])('is named, with its remedy: %d, %s', (errno, name, remedy) => {
      mounted.hang(`error ${errno}`)
      const path = `${top}/v/file`
      expect(() => linuxHost.files.read(path)).toThrow(`cannot read ${path} (${name}, stat '${path}'): ${remedy}`)
      expect(() => linuxHost.inodes.stat(linuxHost.inodes.openTrusted(`${top}/v`))).toThrow(`: ${name}`)
    })
  },
)
