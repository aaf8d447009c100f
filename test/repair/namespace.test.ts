import { expect, it } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { refuseOtherMountNamespace } from '../../src/repair/state.ts'
import { type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { MOUNTED, READY } from '../helpers/mount-records.ts'
import { memoryStage } from '../helpers/stage.ts'

/** A process in the mount namespace "memory", after these mounts. */
function withMounts(...mounts: Partial<MountRecord>[]): () => void {
  const session = memoryStage().session()
  for (const [index, mount] of mounts.entries()) {
    mountRecords.write(session, { ...READY, directory: `/pods/${index}/v`, ...mount })
  }
  return () => refuseOtherMountNamespace(session)
}

const HERE = { mounted: { ...MOUNTED, namespace: 'memory' } }
const ELSEWHERE = { mounted: { ...MOUNTED, namespace: 'mnt:[7]' } }

it('heal is refused if one mount of this boot is in another mount namespace, and the message names both and the command', () => {
  const work = withMounts(HERE, ELSEWHERE, HERE)
  expect(work).toThrow(Refusal)
  expect(work).toThrow(/\(\/pods\/1\/v was made in mnt:\[7\], this is memory\): .*nsenter --target 1 --mount/)
})

it.each<[string, Partial<MountRecord>[]]>([
  ['nothing is mounted', []],
  ['all mounts were made here', [HERE, HERE]],
  ['a reboot has ended the mounts of the other namespace', [{ ...ELSEWHERE, boot: 'boot-0' }]],
  ['a mount is incomplete', [{ mounted: undefined }]],
])('heal is not refused if %s', (_what, mounts) => {
  expect(withMounts(...mounts)).not.toThrow()
})
