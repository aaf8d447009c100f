import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Crashing } from '../crash/every-call.ts'
import { expectSame, GROUP, snapshot } from '../crash/volume.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

const suiteTitle = `a journal on a disk that cannot be written${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
// Six batches: one is made while the next is recorded, and any but the first may find no room.
const FILES = 3800

describe.skipIf(!isRoot)(suiteTitle, () => {
  const remount = (directory: string, how: string) => execFileSync('mount', ['-o', `remount,${how}`, directory])

  it('read-only: a mount is refused with the path named, and changes nothing', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    remount(on.node.state, 'ro')
    const { status, message } = await on.node.call(...on.mountCall('a'))
    expect(status).toBe('Failure')
    expect(message).toContain(on.node.state)
    expectSame(snapshot(on.source), on.original)
    expect(on.node.layers('a')).toEqual([])
    remount(on.node.state, 'rw')
    await on.mount('a')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.original)
  })

  it('read-only: an unmount succeeds, and its pending restore runs once the disk is writable', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    await on.mount('a')
    remount(on.node.state, 'ro')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.whole)
    remount(on.node.state, 'rw')
    await on.mount('a')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.original)
  })

  it("read-only: mounts of others outside kubelet's directories stay", async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    const home = `${on.node.top}/home`
    fs.mkdirSync(home)
    execFileSync('mount', ['--bind', on.source, home])
    remount(on.node.state, 'ro')
    const { status, message } = await on.node.call('unmount', home)
    expect(status).toBe('Failure')
    expect(message).toContain("is not modekeep's")
    expectSame(snapshot(home), on.original)
    // Nor does what is not there keep a pod: nothing can be made in the state directory.
    await on.unmount('a')
  })

  it('read-only only for the records of volumes: no walk and no restore run, and the pod unmounts', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    await on.mount('a')
    const ownership = `${on.node.state}/ownership`
    execFileSync('mount', ['--bind', ownership, ownership])
    onTestFinished(() => void (fs.existsSync(ownership) && execFileSync('umount', ['--lazy', ownership])))
    execFileSync('mount', ['-o', 'remount,bind,ro', ownership])
    const { status, message } = await on.node.call(...on.mountCall('b', { fsGroupChangePolicy: 'Always' }))
    expect(status).toBe('Failure')
    expect(message).toContain(ownership)
    expect(on.node.layers('b')).toEqual([])
    await on.unmount('a')
    expectSame(snapshot(on.source), on.whole)
    execFileSync('mount', ['-o', 'remount,bind,rw', ownership])
    await on.mount('a')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.original)
  })

  /** A node whose state has this much room, and a volume of a few batches. */
  function narrow(on: Crashing, kilobytes: number) {
    remount(on.node.state, 'size=64m')
    on.fresh()
    const specs = Array.from({ length: FILES }, (_, n) => `file d${n % 7}/f${n} ${n % 5 ? '0640' : '4750'} ${n % 3}`)
    makeTree(fs, on.source, specs)
    remount(on.node.state, `size=${kilobytes}k`)
    return listing(on)
  }
  const listing = ({ source }: Crashing) => {
    const listed = listTree(fs, source)
    return { groups: groups(listed), modes: modes(listed) }
  }
  const ownedIn = ({ groups }: ReturnType<typeof listing>) =>
    Object.values(groups).filter((gid) => gid === GROUP).length

  it(
    'full, at any time of a mount: the message names the path, nothing is shown, no permission is added, and no record is lost',
    async () => {
      const on = new Crashing('tmpfs')
      const ends = { untouched: 0, midway: 0, all: 0 }
      const nowhere: string[] = []
      const untrue: string[] = []
      for (let room = 4, done = false; !done; room += sized(240, 60, 4)) {
        const before = narrow(on, room)
        const answer = await on.node.call(...on.mountCall('a'))
        const after = listing(on)
        done = answer.status === 'Success'
        const changed = ownedIn(after)
        if (changed === 0) ends.untouched++
        else if (changed < FILES) ends.midway++
        else ends.all++
        if (!done) {
          const said = `with ${room} kB, ${changed} changed: ${answer.message}`
          if (!answer.message?.includes(on.node.state)) nowhere.push(said)
          if (changed > 0 && answer.message?.includes('nothing was changed')) untrue.push(said)
          expect(on.node.layers('a')).toEqual([])
        }
        const bits = (listed: typeof before) =>
          Object.values(listed.modes).map((mode) => Number.parseInt(mode, 8) & 0o777)
        expect(bits(after)).toEqual(bits(before))
        expect(await on.node.call('unmount', on.node.podDirectory('a'))).toEqual({ status: 'Success' })
        expect(on.node.layers('a')).toEqual([])

        remount(on.node.state, 'size=64m')
        expect(await on.node.call(...on.mountCall('a'))).toEqual({ status: 'Success' })
        expect(ownedIn(listing(on))).toBe(Object.keys(before.groups).length - 1)
        expect(await on.node.call('unmount', on.node.podDirectory('a'))).toEqual({ status: 'Success' })
        expect(listing(on)).toEqual(before)
      }
      console.log('full disk:', ends)
      expect(ends.untouched).toBeGreaterThan(0)
      expect(ends.midway).toBeGreaterThan(0)
      expect({ nowhere, untrue }).toEqual({ nowhere: [], untrue: [] })
    },
    PATIENCE,
  )

  it('without a free inode: a mount is refused with the path named, and its unmount succeeds', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    await on.mount('b')
    await on.unmount('b')
    const { files, ffree } = fs.statfsSync(on.node.state)
    remount(on.node.state, `nr_inodes=${files - ffree}`)
    const { status, message } = await on.node.call(...on.mountCall('a'))
    expect(status).toBe('Failure')
    expect(message).toContain(on.node.state)
    expectSame(snapshot(on.source), on.original)
    await on.unmount('a')
  })

  it('full at an unmount with a restore: the pod unmounts, and the first state returns once there is space', async () => {
    const on = new Crashing('tmpfs')
    const before = narrow(on, 64 * 1024)
    expect(await on.node.call(...on.mountCall('a'))).toEqual({ status: 'Success' })
    const used = fs.statfsSync(on.node.state)
    remount(on.node.state, `size=${((used.blocks - used.bfree) * used.bsize) / 1024}k`)
    await on.unmount('a')
    remount(on.node.state, 'size=64m')
    expect(await on.node.call(...on.mountCall('a'))).toEqual({ status: 'Success' })
    await on.unmount('a')
    expect(listing(on)).toEqual(before)
  })
})
