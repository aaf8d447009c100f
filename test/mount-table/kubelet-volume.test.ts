import { expect, it } from 'vitest'
import { isKubeletVolume, isPodsVolume } from '../../src/mount-table/kubelet-volume.ts'

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
])('%s: a volume %s, also counting subPaths %s', (path, isVolume, isPods) => {
  expect(isKubeletVolume(path)).toBe(isVolume)
  expect(isPodsVolume(path)).toBe(isPods)
})
