import { describe, expect, it } from 'vitest'
import { hasReconciled, hasSetUp } from './node/kubelet-log.ts'

const UID = '0fc7f2f5-51ef-4f3c-9a43-c32ae2b0f9c4'
/** Lines of kubelet 1.20 and 1.36, shortened. */
const V1_20 = `I1126 10:00:00.000000    1 operation_generator.go:672] MountVolume.SetUp succeeded for volume "v" (UniqueName: "flexvolume-modekeep/fs/${UID}-v") pod "a" (UID: "${UID}")`
const V1_36 = `I1126 10:00:00.000000    1 operation_generator.go:557] "MountVolume.SetUp succeeded for volume \\"v\\" (UniqueName: \\"flexvolume-modekeep/fs/${UID}-v\\") pod \\"a\\" (UID: \\"${UID}\\") " pod="default/a"`

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

  it('finds the line by which kubelet begins to compare mounts with pods', () => {
    expect(hasReconciled('I1126 10:00:00.000000    1 reconciler.go:26] "Reconciler: start to sync state"')).toBe(true)
    expect(hasReconciled(V1_36)).toBe(false)
  })
})
