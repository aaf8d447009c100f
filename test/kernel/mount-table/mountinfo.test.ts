import { describe, expect, it } from 'vitest'
import { parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'

// One line each, of the kinds that have broken other readers of this file.
const DEBIAN = '25 30 0:23 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw'
const FEDORA =
  '62 1 0:34 /root / rw,relatime shared:1 - btrfs /dev/mapper/fedora-root rw,seclabel,compress=zstd:1,ssd,subvolid=256,subvol=/root'
const ALPINE = '21 0 7:0 / / ro,relatime - squashfs /dev/root ro'
const NIXOS = '31 24 254:1 /nix/store /nix/store ro,nosuid,nodev,relatime - ext4 /dev/disk/by-label/nix\\040os rw'
const FLATCAR =
  '44 40 254:0 / /usr ro,relatime shared:3 master:1 propagate_from:2 unbindable - ext4 /dev/mapper/usr ro,seclabel'
const CONTAINER =
  '512 480 0:71 / / rw,relatime master:190 - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/u,workdir=/w,uuid=on'
const NAMESPACE = '130 98 0:4 net:[4026532281] /run/netns/pod\\0401 rw shared:8 - nsfs nsfs rw'
const AUTOFS =
  '33 25 0:30 / /proc/sys/fs/binfmt_misc rw,relatime shared:14 - autofs systemd-1 rw,fd=29,pgrp=1,timeout=0'
const NFS =
  '92 62 0:55 /export/a\\011b /mnt/n\\012l rw shared:50 - nfs4 10.0.0.1:/export\\040x rw,vers=4.2,addr=10.0.0.1'
const DELETED = '700 62 254:2 /cm/..2024_01_01//deleted /pods/p/vol ro,relatime shared:1 - ext4 /dev/vda2 rw'
const EMPTY_SOURCE = '88 62 0:60 / /mnt/t rw,relatime - tmpfs  rw,size=1024k'
const FUSE = '90 62 0:61 / /mnt/f rw,nosuid,nodev - fuse.sshfs user@host:/a\\134b rw,user_id=0,group_id=0'
const CIFS = '91 62 0:62 /a /mnt/c rw - cifs //server/share\\040one rw,vers=3.0,username=x'
const DASH = '93 62 0:63 / /mnt/- rw,relatime shared:9 - tmpfs - rw'

describe('a line of mountinfo', () => {
  it.each([
    [
      'of Debian',
      DEBIAN,
      {
        id: 25,
        parent: 30,
        device: '0:23',
        root: '/',
        mountPoint: '/sys',
        options: ['rw', 'nosuid', 'nodev', 'noexec', 'relatime'],
        propagation: ['shared:7'],
        fsType: 'sysfs',
        source: 'sysfs',
        superOptions: ['rw'],
      },
    ],
    [
      'of Fedora, a btrfs subvolume',
      FEDORA,
      {
        id: 62,
        parent: 1,
        device: '0:34',
        root: '/root',
        mountPoint: '/',
        options: ['rw', 'relatime'],
        propagation: ['shared:1'],
        fsType: 'btrfs',
        source: '/dev/mapper/fedora-root',
        superOptions: ['rw', 'seclabel', 'compress=zstd:1', 'ssd', 'subvolid=256', 'subvol=/root'],
      },
    ],
    [
      'of Alpine, without tags',
      ALPINE,
      {
        id: 21,
        parent: 0,
        device: '7:0',
        root: '/',
        mountPoint: '/',
        options: ['ro', 'relatime'],
        propagation: [],
        fsType: 'squashfs',
        source: '/dev/root',
        superOptions: ['ro'],
      },
    ],
    [
      'of Flatcar, with every tag',
      FLATCAR,
      {
        id: 44,
        parent: 40,
        device: '254:0',
        root: '/',
        mountPoint: '/usr',
        options: ['ro', 'relatime'],
        propagation: ['shared:3', 'master:1', 'propagate_from:2', 'unbindable'],
        fsType: 'ext4',
        source: '/dev/mapper/usr',
        superOptions: ['ro', 'seclabel'],
      },
    ],
    [
      'of a network namespace',
      NAMESPACE,
      {
        id: 130,
        parent: 98,
        device: '0:4',
        root: 'net:[4026532281]',
        mountPoint: '/run/netns/pod 1',
        options: ['rw'],
        propagation: ['shared:8'],
        fsType: 'nsfs',
        source: 'nsfs',
        superOptions: ['rw'],
      },
    ],
    [
      'with dashes as names',
      DASH,
      {
        id: 93,
        parent: 62,
        device: '0:63',
        root: '/',
        mountPoint: '/mnt/-',
        options: ['rw', 'relatime'],
        propagation: ['shared:9'],
        fsType: 'tmpfs',
        source: '-',
        superOptions: ['rw'],
      },
    ],
  ])('%s is parsed completely', (_where, line, row) => {
    expect(parseMountinfo(`${line}\n`)).toEqual([row])
  })

  it.each([
    ['a space', NIXOS, { mountPoint: '/nix/store', source: '/dev/disk/by-label/nix os' }],
    ['tab, newline and space', NFS, { root: '/export/a\tb', mountPoint: '/mnt/n\nl', source: '10.0.0.1:/export x' }],
    ['a backslash', FUSE, { fsType: 'fuse.sshfs', source: 'user@host:/a\\b' }],
    ['a space in a share', CIFS, { root: '/a', source: '//server/share one' }],
    ['an escaped backslash before digits', '1 0 0:1 / /a\\134040b rw - t s rw', { mountPoint: '/a\\040b' }],
    ['a hash', '1 0 0:1 / /a rw - t \\043s rw', { source: '#s' }],
    ['a backslash without an escape', '1 0 0:1 / /a\\04b\\x rw - t s rw', { mountPoint: '/a\\04b\\x' }],
    ['a deleted root', DELETED, { root: '/cm/..2024_01_01//deleted', mountPoint: '/pods/p/vol' }],
    ['an empty source', EMPTY_SOURCE, { fsType: 'tmpfs', source: '', superOptions: ['rw', 'size=1024k'] }],
    ['an overlay', CONTAINER, { superOptions: ['rw', 'lowerdir=/l/A:/l/B', 'upperdir=/u', 'workdir=/w', 'uuid=on'] }],
    ['an automount', AUTOFS, { source: 'systemd-1', mountPoint: '/proc/sys/fs/binfmt_misc' }],
    ['letters beyond ASCII', '1 0 0:1 / /ä/日本 rw - t s rw', { mountPoint: '/ä/日本' }],
  ])('with %s is unescaped', (_what, line, part) => {
    expect(parseMountinfo(line)).toEqual([expect.objectContaining(part)])
  })

  it.each([
    ['a word', 'nonsense'],
    ['no separator', '25 30 0:23 / /sys rw,nosuid shared:7 sysfs sysfs rw'],
    ['no super options', '25 30 0:23 / /sys rw - sysfs sysfs'],
    ['nothing after the separator', '25 30 0:23 / /sys rw -'],
    ['too few fields', '25 30 0:23 /'],
    ['a separator too early', '25 30 0:23 / /sys -'],
    ['letters for its id', 'x 30 0:23 / /sys rw - sysfs sysfs rw'],
    ['letters after its id', '25x 30 0:23 / /sys rw - sysfs sysfs rw'],
    ['an id below zero', '-25 30 0:23 / /sys rw - sysfs sysfs rw'],
    ['an id with a fraction', '2.5 30 0:23 / /sys rw - sysfs sysfs rw'],
    ['no id', ' 30 0:23 / /sys rw - sysfs sysfs rw'],
    ['letters for its parent', '25 y 0:23 / /sys rw - sysfs sysfs rw'],
    ['no parent', '25  0:23 / /sys rw - sysfs sysfs rw'],
    ['no minor', '25 30 0: / /sys rw - sysfs sysfs rw'],
    ['no colon in its device', '25 30 23 / /sys rw - sysfs sysfs rw'],
    ['letters for its device', '25 30 a:b / /sys rw - sysfs sysfs rw'],
    ['no root', '25 30 0:23  /sys rw - sysfs sysfs rw'],
    ['a space before it', ' 25 30 0:23 / /sys rw - sysfs sysfs rw'],
  ])('that is invalid (%s) is quoted in the error among other lines', (_what, line) => {
    expect(() => parseMountinfo(`${DEBIAN}\n${line}\n${ALPINE}\n`)).toThrow(
      `mountinfo line not understood: ${JSON.stringify(line)}`,
    )
  })
})

describe('a complete mountinfo', () => {
  it('is parsed in its order, and an empty one has no mount', () => {
    const all = [DEBIAN, FEDORA, ALPINE, NIXOS, FLATCAR, CONTAINER, NAMESPACE, AUTOFS, NFS, DELETED, EMPTY_SOURCE]
    expect(parseMountinfo(all.map((line) => `${line}\n`).join('')).map((row) => row.id)).toEqual([
      25, 62, 21, 31, 44, 512, 130, 33, 92, 700, 88,
    ])
    expect(parseMountinfo('')).toEqual([])
  })

  it('has the layers of exactly one directory', () => {
    const rows = parseMountinfo(
      [
        '10 1 0:1 / /pods/a rw - t one rw',
        '11 10 0:2 / /pods/a rw - t two rw',
        '12 1 0:3 / /pods/ab rw - t other rw',
        '13 11 0:4 / /pods/a/b rw - t below rw',
        '14 1 0:5 / /pods/a\\040b rw - t spaced rw',
      ].join('\n'),
    )
    expect(selectMountLayers(rows, '/pods/a').map((row) => row.source)).toEqual(['one', 'two'])
    expect(selectMountLayers(rows, '/pods/a b').map((row) => row.source)).toEqual(['spaced'])
    expect(selectMountLayers(rows, '/pods')).toEqual([])
  })

  it('has layers in mount order, although one mounted beneath is listed last', () => {
    const rows = parseMountinfo(
      [
        '10 1 0:1 / / rw - ext4 x rw',
        '20 10 0:2 / /pods/a rw - tmpfs lowest rw',
        '30 40 0:2 / /pods/a rw - tmpfs top rw',
        '40 20 0:2 / /pods/a rw - tmpfs beneath rw',
      ].join('\n'),
    )
    expect(selectMountLayers(rows, '/pods/a').map((row) => row.source)).toEqual(['lowest', 'beneath', 'top'])
    expect(selectMountLayers(rows, '/')).toHaveLength(1)
  })
})
