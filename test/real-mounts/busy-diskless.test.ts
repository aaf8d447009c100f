import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { kernelStage, type Stage } from '../helpers/stage.ts'

const skipReason = cannotMountWith('bindfs')

describe.skipIf(skipReason !== '')(
  addSkipReason('an unmount of memory or of a daemon’s file system in use', skipReason),
  () => {
    let stage: Stage
    let users: ChildProcess[]
    beforeEach(() => {
      stage = kernelStage('tmpfs')
      stage.allow({ sources: [`${stage.top}/volumes/*`], fsTypes: ['fuse.bindfs', 'tmpfs'] })
      users = []
    })
    afterEach(async () => {
      for (const user of users) await end(user)
      stage.close()
    })

    /** Mounts a volume for pod "a" and opens a file in it by another process. */
    async function mountAndUse(fsType: string): Promise<ChildProcess> {
      const source = `${stage.top}/volumes/data`
      fs.mkdirSync(source, { recursive: true })
      const options = fsType === 'tmpfs' ? {} : { source }
      await stage.mount('a', { ...options, 'kubernetes.io/fsType': fsType, ownership: 'none' })
      const script = 'exec 3>"$1/file"; echo; exec sleep 1000'
      const user = spawn('sh', ['-c', script, 'sh', stage.podDirectory('a')], { stdio: ['ignore', 'pipe', 'inherit'] })
      users.push(user)
      await new Promise((resolve) => user.stdout?.once('data', resolve))
      return user
    }

    async function end(user: ChildProcess): Promise<void> {
      users = users.filter((one) => one !== user)
      await new Promise((resolve) => {
        user.once('exit', resolve)
        user.kill('SIGKILL')
      })
    }

    const inUse = ({ pid }: ChildProcess) =>
      `is unmounted, but still in use by process ${pid} ("sleep"): it ends with that use`

    it.each(['tmpfs', 'fuse.bindfs'])(
      'succeeds at once, and status reports it until the use ends: %s',
      async (fsType) => {
        const user = await mountAndUse(fsType)
        expect(await stage.unmount('a')).toContain(inUse(user))
        expect(stage.layers('a')).toEqual([])
        fs.rmdirSync(stage.podDirectory('a'))
        const busy = { state: 'busy', reason: expect.stringContaining(inUse(user)) }
        expect((await readSelectedStatus(stage.session())).mounts).toMatchObject([busy])
        expect(await stage.unmount('a')).toContain(inUse(user))
        expect(await stage.heal()).toMatchObject([busy])
        await end(user)
        expect((await readSelectedStatus(stage.session())).mounts).toEqual([])
        await stage.heal()
        expect(listReadableMountRecords(stage)).toEqual([])
      },
    )

    it('does not report another file system that has the freed device number in a private copy of the mounts', async () => {
      const user = await mountAndUse('tmpfs')
      const { dev } = fs.statSync(stage.podDirectory('a'))
      expect(await stage.unmount('a')).toContain(inUse(user))
      await end(user)
      // The kernel gives the lowest free number to the next file system.
      for (let last = -1; last !== dev; ) {
        const script = 'mount -t tmpfs none /mnt && stat -c %d /mnt && exec sleep 1000'
        const copy = spawn('unshare', ['-m', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
        users.push(copy)
        last = await new Promise<number>((resolve) => copy.stdout?.once('data', (text) => resolve(Number(text))))
        expect(users.length).toBeLessThan(50)
      }
      expect((await readSelectedStatus(stage.session())).mounts).toEqual([])
    })

    it('reports a process that has a private copy of the mount', async () => {
      await stage.mount('a', { 'kubernetes.io/fsType': 'tmpfs', ownership: 'none' })
      const copy = spawn('unshare', ['-m', 'sh', '-c', 'echo; exec sleep 1000'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      users.push(copy)
      await new Promise((resolve) => copy.stdout?.once('data', resolve))
      const user = spawn('sh', ['-c', 'exec 3>"$1/file"; echo; exec sleep 1000', 'sh', stage.podDirectory('a')], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      users.push(user)
      await new Promise((resolve) => user.stdout?.once('data', resolve))
      expect(await stage.unmount('a')).toContain(`process ${copy.pid} ("sleep")`)
      await end(user)
      const busy = { state: 'busy', reason: expect.stringContaining(`process ${copy.pid} ("sleep")`) }
      expect((await readSelectedStatus(stage.session())).mounts).toMatchObject([busy])
      await end(copy)
      expect((await readSelectedStatus(stage.session())).mounts).toEqual([])
    })

    it('leaves status without a report after the last use has ended, and a repeated unmount succeeds', async () => {
      await end(await mountAndUse('tmpfs'))
      expect(await stage.unmount('a')).toBeUndefined()
      expect(listReadableMountRecords(stage)).toEqual([])
      expect(await stage.unmount('a')).toBeUndefined()
    })

    it('finds the process only by its open file if the kernel lists an NFS server', async () => {
      execFileSync('mount', ['-t', 'tmpfs', 'none', '/proc/fs'])
      try {
        fs.mkdirSync('/proc/fs/nfsfs')
        fs.writeFileSync(
          '/proc/fs/nfsfs/volumes',
          'NV SERVER   PORT DEV          FSID FSC\nv4 7f000001  801 0:99 0:0 no\n',
        )
        const user = await mountAndUse('tmpfs')
        expect(await stage.unmount('a')).toContain(inUse(user))
        await end(user)
        expect(await stage.unmount('a')).toBeUndefined()
      } finally {
        execFileSync('umount', ['/proc/fs'])
      }
    })
  },
)
