import { describe, expect, it } from 'vitest'
import {
  reconcileContainers,
  recordContainerWithoutClones,
  releaseContainerClones,
} from '../../src/container/container-task.ts'
import { containerRecords, listContainerGroupHolders } from '../../src/state/container-record.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { CONTAINER, nodeWith, type TestNode } from './node.ts'

const skipped = cannotMount('tmpfs')
const AWAY = 'it was created while nobody was asked'

const known = (as: 'created' | 'started', isMapped: boolean) => ({
  at: Date.now() + 1,
  created: as === 'created' ? [CONTAINER] : [],
  started: as === 'started' ? [CONTAINER] : [],
  unmapped: isMapped ? [] : [CONTAINER],
})

const recordOf = ({ session }: TestNode) => containerRecords.read(session, CONTAINER)

describe.skipIf(skipped !== '')(`a container that was created without the clones made for it${skipped}`, () => {
  it.each(['created', 'started'] as const)(
    'and is %s loses the unused clones, and no reference to the volume remains',
    async (as) => {
      const node = nodeWith('tmpfs')
      await node.attach(node.order([node.clone()]))
      expect(listContainerGroupHolders(node.session)).toHaveLength(1)
      expect(reconcileContainers(node.session, known(as, false))).toEqual([CONTAINER])
      expect([node.mounted(), node.records(), listContainerGroupHolders(node.session)]).toEqual([[], [], []])
    },
  )

  it('is recorded as running without clones, and the clones are removed', async () => {
    const node = nodeWith('tmpfs')
    const order = node.order([node.clone()])
    await node.attach(order)
    await recordContainerWithoutClones(node.session, order, AWAY)
    expect(recordOf(node)).toMatchObject({ state: 'started', volumes: [{ to: 2000, why: AWAY }] })
    expect(listContainerGroupHolders(node.session)).toEqual([])
    // The record is the same for any order of both.
    reconcileContainers(node.session, known('started', false))
    expect(node.mounted()).toEqual([])
    await recordContainerWithoutClones(node.session, order, 'another reason')
    expect(recordOf(node)).toMatchObject({ volumes: [{ why: AWAY }] })
  })

  it('is recognized by its mounts: a container that has its clone keeps the clone until the start', async () => {
    const node = nodeWith('tmpfs')
    await node.attach(node.order([node.clone()]))
    const clones = node.mounted()
    expect(reconcileContainers(node.session, known('created', true))).toEqual([])
    expect(node.mounted()).toEqual(clones)
    // Also where nothing is on record of it any more.
    containerRecords.remove(node.session, CONTAINER)
    expect(reconcileContainers(node.session, known('created', true))).toEqual([])
    expect(node.mounted()).toEqual(clones)
    reconcileContainers(node.session, known('started', true))
    expect(node.mounted()).toEqual([])
  })

  it("may be missing from the runtime's list during its creation: the record is removed only if the container does not start", async () => {
    const node = nodeWith('tmpfs')
    await node.attach(node.order([node.clone()]))
    const clones = node.mounted()
    const untold = { ...known('created', true), created: [] }
    expect(reconcileContainers(node.session, untold)).toEqual([])
    expect(node.mounted()).toEqual(clones)
    await releaseContainerClones(node.session, CONTAINER, 'started')
    reconcileContainers(node.session, { ...untold, isLater: true })
    expect(recordOf(node)).toMatchObject({ state: 'started' })
    await node.attach(node.order([node.clone()]))
    reconcileContainers(node.session, { ...untold, at: Date.now() + 1, isLater: true })
    expect([node.mounted(), node.records()]).toEqual([[], []])
  })
})
