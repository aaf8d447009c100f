import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { groups, listTree, makeTree } from '../helpers/tree.ts'
import { as, cannotMount, mountMapped, mountNew, scratch } from './mapped-volume.ts'

const DISK = 1500
const RED = 2000
const BLUE = 3000

/** A volume of group 1500, mounted for a pod of group 2000 and for one of group 3000. */
function twoPods(fsType: string) {
  const top = scratch()
  const volume = `${mountNew(top, fsType)}/volume`
  makeTree(fs, volume, [
    `file shared 0660 ${DISK}`,
    'file roots 0640 0',
    'file theirs 0640 7',
    `file red 0660 ${RED}`,
    `dir sub 2770 ${DISK}`,
    'dir plain 0777 7',
    `file sub/suid 6755 ${DISK}`,
    'link link shared',
  ])
  fs.chownSync(`${volume}/theirs`, 4_294_967_294, 7)
  fs.chownSync(volume, 0, DISK)
  fs.chmodSync(volume, 0o2770)
  const before = listTree(fs, volume)
  mountMapped(volume, `${top}/red`, DISK, RED)
  mountMapped(volume, `${top}/blue`, DISK, BLUE)
  return { volume, before, red: `${top}/red`, blue: `${top}/blue` }
}

const KINDS = ['tmpfs', 'ext4', 'xfs', 'btrfs'].map((fsType) => [fsType, cannotMount(fsType)] as const)

describe.each(KINDS)('an idmapped mount of %s%s', (fsType, why) => {
  it.skipIf(why !== '')('shows the volume to two groups, to each as its own', () => {
    const { red, blue, before } = twoPods(fsType)
    const own = (group: number) =>
      Object.fromEntries(Object.entries(groups(before)).map(([path, gid]) => [path, gid === DISK ? group : gid]))
    expect(groups(listTree(fs, red))).toEqual({ ...own(RED), red: DISK })
    expect(groups(listTree(fs, blue))).toEqual({ ...own(BLUE), red: RED })
    expect(as({ group: RED }, `cat ${red}/shared`)).toBe('shared')
    expect(as({ group: 1000, also: BLUE }, `cat ${blue}/shared`)).toBe('shared')
    expect(as({ group: RED }, `cat ${blue}/shared`)).toMatch(/Permission denied/)
    expect(as({ group: DISK }, `cat ${red}/shared`)).toMatch(/Permission denied/)
  })

  it.skipIf(why !== '')(
    "stores a pod's new files with the volume's group, and shows them to the other pod as its own",
    () => {
      const { red, blue, volume } = twoPods(fsType)
      as({ group: RED }, `touch ${red}/a ${red}/plain/a; mkdir ${red}/sub/a`)
      as({ group: 1000, also: BLUE }, `touch ${blue}/b ${blue}/plain/b; chgrp ${BLUE} ${blue}/plain/b`)
      const created = ['a', 'sub/a', 'plain/a', 'b', 'plain/b']
      const owners = (top: string) => created.map((path) => fs.statSync(`${top}/${path}`).gid)
      expect(owners(volume)).toEqual(created.map(() => DISK))
      expect(owners(red)).toEqual(created.map(() => RED))
      expect(owners(blue)).toEqual(created.map(() => BLUE))
      expect(created.map((path) => fs.statSync(`${volume}/${path}`).uid)).toEqual(created.map(() => 1000))
    },
  )

  it.skipIf(why !== '')('keeps users and the rights of other groups', () => {
    const { red, volume } = twoPods(fsType)
    for (const path of ['roots', 'theirs', 'shared', 'sub/suid']) {
      expect(fs.statSync(`${red}/${path}`)).toMatchObject({
        uid: fs.statSync(`${volume}/${path}`).uid,
        mode: fs.statSync(`${volume}/${path}`).mode,
      })
    }
    expect(as({ group: RED, also: 7 }, `cat ${red}/theirs`)).toBe('theirs')
    expect(as({ group: RED }, `cat ${red}/theirs`)).toMatch(/Permission denied/)
    expect(as({ group: RED }, `cat ${red}/roots`)).toMatch(/Permission denied/)
  })

  it.skipIf(why !== '')('changes nothing on disk, not even ctime', () => {
    const { volume, before, red } = twoPods(fsType)
    expect(as({ group: RED }, `cat ${red}/shared; ls -lR ${red}`)).toMatch(/^shared/)
    expect(listTree(fs, volume)).toEqual(before)
  })
})

const skipReason = cannotMount('tmpfs')

describe.skipIf(skipReason !== '')(`the two groups of an idmapped mount${skipReason}`, () => {
  it.each([
    [0, 1],
    [0, 4_294_967_294],
    [2000, 0],
    [4_294_967_293, 4_294_967_294],
    [65_534, 65_535],
    [1500, 2000],
  ])('%i and %i are swapped, and all others unchanged', (one, other) => {
    const top = scratch()
    const volume = mountNew(top, 'tmpfs')
    const ids = [...new Set([one - 1, one, one + 1, other - 1, other, other + 1, 0, 77, 4_294_967_294])]
    const gids = ids.filter((gid) => gid >= 0 && gid <= 4_294_967_294)
    for (const gid of gids) {
      fs.writeFileSync(`${volume}/${gid}`, '')
      fs.chownSync(`${volume}/${gid}`, gid, gid)
    }
    fs.chownSync(volume, 0, one)
    mountMapped(volume, `${top}/pod`, one, other)
    const shown = gids.map((gid) => fs.statSync(`${top}/pod/${gid}`))
    expect(shown.map(({ uid }) => uid)).toEqual(gids)
    expect(shown.map(({ gid }) => gid)).toEqual(gids.map((gid) => (gid === one ? other : gid === other ? one : gid)))
  })
})
