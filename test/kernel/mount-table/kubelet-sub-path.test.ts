import { describe, expect, it } from 'vitest'
import { parseKubeletSubPaths } from '../../../src/kernel/mount-table/kubelet-volume.ts'

const KUBELET = '/var/lib/kubelet'
const POD = `${KUBELET}/pods/7d2e`
const DATED = '..2026_11_21_10_20_30.123456'
const AT = `${POD}/volume-subpaths/settings/web/0`
const ON_DISK = `${POD}/volumes/kubernetes.io~configmap/settings`
const ON_TMPFS = `${POD}/volumes/kubernetes.io~secret/settings`

const row = (id: number, parent: number, device: string, root: string, mountPoint: string, options = 'rw,relatime') =>
  `${id} ${parent} ${device} ${root} ${mountPoint} ${options} shared:${id} - ext4 /dev/x rw\n`

const DISK = row(20, 1, '8:1', '/', '/')
const TMPFS = row(21, 20, '0:50', '/', ON_TMPFS)
const found = (...rows: string[]) => parseKubeletSubPaths(rows.join(''), KUBELET)

describe("kubelet's subPath binds of volumes with atomic updates", () => {
  it.each([
    ['a file on disk', [DISK], '8:1', ON_DISK, '/config', ON_DISK, 'config'],
    ['a file in a directory', [DISK], '8:1', ON_DISK, '/dir/config', ON_DISK, 'dir/config'],
    ['a file in a tmpfs', [DISK, TMPFS], '0:50', '', '/config', ON_TMPFS, 'config'],
    ['a complete volume', [DISK], '8:1', ON_DISK, '', ON_DISK, '..data'],
    [
      'a volume on its own disk',
      [DISK, row(22, 20, '8:2', '/', '/var/lib/kubelet')],
      '8:2',
      ON_DISK.slice(16),
      '/a',
      ON_DISK,
      'a',
    ],
    ['a subvolume', [row(20, 1, '0:30', '/@root', '/')], '0:30', `/@root${ON_DISK}`, '/a', ON_DISK, 'a'],
  ])('are found: %s', (_what, others, device, top, path, volumeDirectory, subPath) => {
    const stale = row(30, device === '8:2' ? 22 : 20, device, `${top}/${DATED}${path}//deleted`, AT, 'ro,nosuid')
    const bind = { volumeDirectory, subPath, doubt: undefined }
    expect(found(...others, stale)).toEqual([
      { ...bind, stale: true, row: expect.objectContaining({ id: 30, mountPoint: AT, options: ['ro', 'nosuid'] }) },
    ])
    expect(found(...others, stale.replace('//deleted', ''))).toMatchObject([{ ...bind, stale: false }])
  })

  it.each(['configmap', 'secret', 'projected', 'downward-api'])('are found in volumes of %s', (plugin) => {
    const directory = `${POD}/volumes/kubernetes.io~${plugin}/settings`
    expect(found(DISK, row(30, 20, '8:1', `${directory}/${DATED}/a//deleted`, AT))).toMatchObject([
      { volumeDirectory: directory, stale: true, doubt: undefined },
    ])
    const tmpfs = row(21, 20, '0:50', '/', directory)
    expect(found(DISK, tmpfs, row(30, 20, '0:50', `/${DATED}/a//deleted`, AT))).toMatchObject([
      { volumeDirectory: directory, stale: true, doubt: undefined },
    ])
  })

  const deleted = `${ON_DISK}/${DATED}/config//deleted`
  it.each([
    ['without a dated directory', `${ON_DISK}/config//deleted`, AT],
    ['whose directory has another date format', `${ON_DISK}/..2026_11_21/config//deleted`, AT],
    ['of another volume of the pod', deleted.replace('/settings/', '/other/'), AT],
    ['of another pod', deleted.replace('7d2e', '7d2f'), AT],
    ['of a plugin without an atomic writer', deleted.replace('~configmap', '~empty-dir'), AT],
    ["of a plugin that is not kubelet's", deleted.replace('kubernetes.io~configmap', 'example.com~configmap'), AT],
    ['of a tmpfs that is not mounted', `/${DATED}/config//deleted`, AT],
    ['at another path of the pod', deleted, AT.replace('volume-subpaths', 'volumes')],
    ['without an index', deleted, AT.replace('/0', '/zero')],
    ["deeper than kubelet's binds", deleted, `${AT}/0`],
    ["below another directory than kubelet's", deleted, AT.replace('/var/lib/kubelet', '/var/lib/kubelets')],
    ["in a copy of kubelet's directory", deleted, `/srv${AT}`],
  ])('are not found in mounts %s', (_what, root, mountPoint) => {
    expect(found(DISK, row(30, 20, '8:1', root, mountPoint))).toEqual([])
  })

  it.each([
    ['that are on another disk', [DISK, row(30, 20, '8:9', deleted, AT)], /volume directory/],
    [
      'whose volume was mounted again',
      [DISK, row(21, 20, '0:51', '/', ON_TMPFS), row(30, 20, '0:50', `/${DATED}/a//deleted`, AT)],
      /volume directory/,
    ],
    [
      'with another mount on top',
      [DISK, row(30, 20, '8:1', deleted, AT), row(31, 30, '8:1', '/x', AT)],
      /another mount/,
    ],
    [
      'with another mount beneath',
      [DISK, row(31, 20, '8:1', '/x', AT), row(30, 31, '8:1', deleted, AT)],
      /another mount/,
    ],
    ['that are hidden', [DISK, row(30, 20, '8:1', deleted, AT), row(31, 20, '0:60', '/', POD)], /volume directory/],
  ])('are uncertain if stale: those %s', (_what, rows, doubt) => {
    expect(found(...rows)).toMatchObject([{ stale: true, doubt: expect.stringMatching(doubt) }])
  })
})
