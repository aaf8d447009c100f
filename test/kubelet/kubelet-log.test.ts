import { describe, expect, it } from 'vitest'
import { hasFailedToSetUp, hasFailedToTearDown, hasMissedDriver, hasReconciled, hasSetUp } from './node/kubelet-log.ts'

const UID = '0fc7f2f5-51ef-4f3c-9a43-c32ae2b0f9c4'
/** Lines of kubelet 1.20 and 1.36, shortened. */
const V1_20 = `I1126 10:00:00.000000    1 operation_generator.go:672] MountVolume.SetUp succeeded for volume "v" (UniqueName: "flexvolume-modekeep/fs/${UID}-v") pod "a" (UID: "${UID}")`
const V1_36 = `I1126 10:00:00.000000    1 operation_generator.go:557] "MountVolume.SetUp succeeded for volume \\"v\\" (UniqueName: \\"flexvolume-modekeep/fs/${UID}-v\\") pod \\"a\\" (UID: \\"${UID}\\") " pod="default/a"`
const ERROR = 'E1126 10:00:00.000000    1 nestedpendingoperations.go:1] Operation failed. Error:'
const CSI = `volume "v" (UniqueName: "kubernetes.io/csi/${UID}-v") pod "a" (UID: "${UID}") `
const NOT_REGISTERED = 'driver name modekeep.csi not found in the list of registered CSI drivers'
/** The line for a volume whose CSI driver is deleted. Kubelet 1.20 quotes the complete error. */
const NO_MOUNTER_1_20 = `${ERROR} ${JSON.stringify(`MountVolume.NewMounter initialization failed for ${CSI}: volume mode "Ephemeral" not supported by driver modekeep.csi (no CSIDriver object)`)}`
const NO_SET_UP_1_36 = `${ERROR} MountVolume.SetUp failed for ${CSI}: kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ${NOT_REGISTERED}`
const NO_DRIVER = `volumeHandler.UnmountVolumeHandler for UnmountVolume failed for ${CSI}: UnmountVolume.FindPluginByName failed for ${CSI}: no volume plugin matched name: modekeep/fs`
const NO_DRIVER_1_20 = `E1126 10:00:00.000000    1 reconciler.go:1] ${NO_DRIVER}`
const NO_DRIVER_1_36 = `E1126 10:00:00.000000    1 reconstruct_common.go:171] ${JSON.stringify(NO_DRIVER)} err="no volume plugin matched"`
const NO_TEAR_DOWN_1_36 = `${ERROR} UnmountVolume.TearDown failed for ${CSI}: kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: ${NOT_REGISTERED}`

describe("the reader of kubelet's log", () => {
  it.each([
    ['1.20', V1_20],
    ['1.36', V1_36],
  ])('finds the set-up of a pod in a line of kubelet %s', (_, line) => {
    const log = `I1126 first\n${line}\nI1126 last`
    expect(hasSetUp(log, UID)).toBe(true)
    expect(hasSetUp(log, UID.replace('0', '1'))).toBe(false)
    expect(hasSetUp(log.replace('succeeded', 'failed'), UID)).toBe(false)
  })

  it.each([
    ['1.20', NO_MOUNTER_1_20],
    ['1.36', NO_SET_UP_1_36],
  ])('finds the failed set-up of a pod whose CSI driver is deleted in a line of kubelet %s', (_, line) => {
    expect(hasFailedToSetUp(line, UID)).toBe(true)
    expect(hasFailedToSetUp(line, UID.replace('0', '1'))).toBe(false)
    expect(hasFailedToTearDown(line, UID)).toBe(false)
  })

  it.each([
    ['1.20', NO_DRIVER_1_20],
    ['1.36', NO_DRIVER_1_36],
  ])('finds the unmount of a pod for which kubelet has no driver in a line of kubelet %s', (_, line) => {
    expect(hasMissedDriver(line, UID)).toBe(true)
    expect(hasMissedDriver(line, UID.replace('0', '1'))).toBe(false)
    expect(hasMissedDriver(NO_TEAR_DOWN_1_36, UID)).toBe(false)
  })

  it('distinguishes the failed tear-down of a volume from its failed set-up', () => {
    expect(hasFailedToTearDown(NO_TEAR_DOWN_1_36, UID)).toBe(true)
    expect(hasFailedToTearDown(JSON.stringify(NO_TEAR_DOWN_1_36), UID)).toBe(true)
    expect(hasFailedToSetUp(NO_TEAR_DOWN_1_36, UID)).toBe(false)
    expect(hasFailedToSetUp(V1_36, UID)).toBe(false)
  })

  it('finds the line by which kubelet begins to compare mounts with pods', () => {
    expect(hasReconciled('I1126 10:00:00.000000    1 reconciler.go:26] "Reconciler: start to sync state"')).toBe(true)
    expect(hasReconciled(V1_36)).toBe(false)
  })
})
