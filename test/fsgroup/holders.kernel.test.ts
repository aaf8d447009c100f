import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findOtherVolumeUsers, listVolumeUsers } from '../../src/fsgroup/holders.ts'
import { DamagedRecord } from '../../src/state/record.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const title = `the users of a volume on a real kernel${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  let stage: Stage
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    makeTree(fs, source(), ['file a 0640'])
  })
  afterEach(() => stage.close())

  const source = () => `${stage.top}/volumes/data`
  const spoil = (pod: string) =>
    fs.writeFileSync(`${locateMountRecords(stage, stage.podDirectory(pod)).path}/record.json`, '{"format":2')
  function found(): (string | undefined)[] {
    const { inodes } = stage.host
    const handle = inodes.openTrusted(source())
    const volume = resolveVolumeIdentity(stage, handle, inodes.stat(handle))
    inodes.close(handle)
    return listVolumeUsers(findOtherVolumeUsers(stage.session(), { volume, source: source() }, undefined)).map(
      ({ directory }) => directory,
    )
  }

  it.each([
    'with space',
    'tab\tand\nline',
    'back\\slash\\040',
    '#hash',

    'gone (deleted)',
    'é\u{1f600}',
  ])('are found at their mount points under any name: %j', async (pod) => {
    await stage.mount(pod, { source: source() })
    expect(found()).toEqual([fs.realpathSync(stage.podDirectory(pod))])
  })

  it('are found next to a foreign mount whose path is longer than any record name', async () => {
    await stage.mount('a', { source: source() })
    const deeper = `mkdir -p ${'é'.repeat(100)} && cd ${'é'.repeat(100)}`
    const script = `cd ${stage.top} && ${Array(8).fill(deeper).join(' && ')} && mount -t tmpfs long "$PWD"`
    execFileSync('sh', ['-ec', script])
    expect(stage.host.mounts.table()).toContain('é'.repeat(100))
    expect(found()).toEqual([stage.podDirectory('a')])
    execFileSync('sh', ['-ec', `umount ${stage.top}/é*/*/*/*/*/*/*/*`])
  })

  it('are unknown if the record of an existing mount is damaged, and known if that mount is gone', async () => {
    await stage.mount('a', { source: source() })
    await stage.mount('b', { source: source() })
    execFileSync('umount', [stage.podDirectory('b')])
    spoil('b')
    expect(found()).toEqual([stage.podDirectory('a')])
    spoil('a')
    expect(found).toThrow(DamagedRecord)
  })

  it('do not include mounts that another mount covers', async () => {
    await stage.mount('a', { source: source() })
    await stage.mount('b', { source: source() })
    execFileSync('mount', ['-t', 'tmpfs', 'over', `${stage.top}/pods/b`])
    expect(found()).toEqual([stage.podDirectory('a')])
    execFileSync('umount', [`${stage.top}/pods/b`])
    expect(found()).toEqual([stage.podDirectory('a'), stage.podDirectory('b')])
  })
})
