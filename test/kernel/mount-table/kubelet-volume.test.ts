import { expect, it } from 'vitest'
import type { Host } from '../../../src/kernel/host.ts'
import {
  isKubeletMountPath,
  isKubeletVolume,
  isModekeepVolumeDirectory,
} from '../../../src/kernel/mount-table/kubelet-volume.ts'

const POD = '/var/lib/kubelet/pods/8c03'

it.each([
  [`${POD}/volumes/modekeep~fs/data`, true, true],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1`, true, true],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1/mount`, true, true],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1/mount/mount`, false, false],
  [`${POD}/volumes/modekeep~fs/data/mount`, false, false],
  [`${POD}/volume-subpaths/data/main/0`, false, true],
  [`${POD}/volume-subpaths/data/main/x`, false, false],
  [`${POD}/volumes/modekeep~fs/data/below`, false, false],
  [`${POD}/volumes/modekeep~fs`, false, false],
  [`${POD}/volumes/nodriver/data`, false, false],
  ['/mnt/data', false, false],
])('%s is a volume %s, also counting subPaths %s', (path, isVolume, isPods) => {
  expect(isKubeletVolume(path)).toBe(isVolume)
  expect(isKubeletMountPath(path)).toBe(isPods)
})

it.each([
  [`${POD}/volumes/modekeep~fs/data`, undefined, true],
  [`${POD}/volumes/other~fs/data`, undefined, false],
  ['/mnt/volumes/modekeep~fs/data', undefined, false],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1/mount`, '{"attachmentID":"a","driverName":"modekeep.csi"}', true],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1/mount`, '{"driverName":"other.csi"}', false],
  [`${POD}/volumes/kubernetes.io~csi/pvc-1/mount`, undefined, false],
])("%s, with kubelet's note %s, is of this driver: %s", (path, told, isOwn) => {
  const asked: string[] = []
  const readForeign = (file: string) => {
    asked.push(file)
    return told
  }
  expect(isModekeepVolumeDirectory({ files: { readForeign } } as unknown as Host, path)).toBe(isOwn)
  expect(asked).toEqual(path.endsWith('/mount') ? [`${POD}/volumes/kubernetes.io~csi/pvc-1/vol_data.json`] : [])
})
