import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { nodeWith } from './node.ts'
import { bound, inPod, RANGES, writeIds } from './pod-namespace.ts'

const KINDS = ['ext4', 'xfs', 'btrfs', 'tmpfs'].map((fsType) => [fsType, cannotMount(fsType)] as const)

describe.each(KINDS)('a clone of a volume on %s for a pod with a user namespace%s', (fsType, why) => {
  it.skipIf(why !== '')(
    'shows the group and the ids of the pod, and stores what the pod writes as its own ids',
    async () => {
      const node = nodeWith(fsType)
      writeIds(node)
      fs.writeFileSync(`${node.volume}/foreign`, '')
      fs.chownSync(`${node.volume}/foreign`, 5000, 5000)
      const [clone = ''] = await node.attach(node.order([node.clone()], { hasUserNamespace: true }))
      const mine = bound(node, clone)
      expect(inPod(2000, `cat ${mine}/file; echo new > ${mine}/new; stat -c %u:%g ${mine}/new ${mine}/file`)).toBe(
        'text5:2000\n0:2000',
      )
      expect(fs.statSync(`${node.volume}/new`)).toMatchObject({ uid: 5, gid: 500 })
      expect(inPod(7, `cat ${mine}/file`)).toMatch(/Permission denied/)
      // No id of the pod's.
      expect(inPod(2000, `stat -c %u:%g ${mine}/foreign`)).toBe('65534:65534')
      expect(fs.statSync(mine)).toMatchObject({ uid: 700_000, gid: 900_000 })
    },
  )
})

const skipped = cannotMount('tmpfs')

describe.skipIf(skipped !== '')(`a user namespace without the group, or an unknown one${skipped}`, () => {
  const asked = 'annotation modekeep/group is "data=2000", but volume "data" (at "/data")'

  it("is refused, and the refusal lists the namespace's groups", async () => {
    const node = nodeWith('tmpfs')
    writeIds(node, RANGES.slice(0, 1))
    await expect(node.attach(node.order([node.clone()], { hasUserNamespace: true }))).rejects.toThrow(
      `${asked} cannot show its group as 2000: the pod's user namespace has groups 0 to 999: write one of these, or leave "hostUsers" out`,
    )
  })

  it.each([
    [undefined, 'is not there'],
    ['{', 'says "{"'],
    ['{"uidMappings":[{"hostId":-1,"containerId":0,"length":1}],"gidMappings":[]}', 'says '],
    [
      JSON.stringify({
        uidMappings: [{ hostId: 65536, containerId: 0, length: 65536 }],
        gidMappings: [
          { hostId: 65536, containerId: 0, length: 65536 },
          { hostId: 200000, containerId: 65535, length: 65536 },
        ],
      }),
      'has a mapping that the kernel rejects: the ranges 0 to 65535 and 65535 to 131070 of its groups overlap: ',
    ],
  ])("is refused if kubelet's file of id mappings has %s, and the message names that file", async (text, what) => {
    const node = nodeWith('tmpfs')
    if (text !== undefined) fs.writeFileSync(`${node.pod}/userns`, text)
    await expect(node.attach(node.order([node.clone()], { hasUserNamespace: true }))).rejects.toThrow(
      `${asked} cannot be mapped for the pod's user namespace: kubelet's file ${node.pod}/userns ${what}`,
    )
    expect(node.records()).toEqual([])
  })
})
