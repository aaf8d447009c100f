// What test/faults found, by name.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { addPathToErrors } from '../../src/kernel/system-error.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

onEveryStage("a failing disk below modekeep's state directory", (open) => {
  let stage: Stage
  let asked: Record<string, string>
  beforeEach(() => {
    stage = open()
    const source = `${stage.top}/volumes/one`
    makeTree(stage.fs, source, ['file first 0644'])
    asked = { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
  })
  afterEach(() => stage.close())

  const refuse = (path: string, code = 'ENOSPC') =>
    addPathToErrors('use', path, () => {
      throw Object.assign(new Error(code), { code })
    })
  const broken = (path: string) => refuse(path, 'EIO')
  const below = (name: string) => stage.host.files.list(`${stage.config.stateDir}/${name}`)

  it('a mount that cannot reserve its volume leaves neither its lock nor a record', async () => {
    const { files } = stage.host
    const replaceUntilBoot = (path: string, text: string) =>
      /reservation/.test(path) ? refuse(path) : files.replaceUntilBoot(path, text)
    stage.host.files = { ...files, replaceUntilBoot }
    await expect(stage.mount('a', asked)).rejects.toThrow(/ENOSPC/)
    stage.host.files = files
    expect(stage.layers('a')).toEqual([])
    expect(below('ownership')).toEqual([])
    expect(below('mounts')).toEqual([])
  })

  it('a mount reports its first error, also if its cleanup fails too', async () => {
    const { files } = stage.host
    const replaceUntilBoot = (path: string) => {
      stage.host.files = { ...stage.host.files, read: broken, list: broken }
      return refuse(path)
    }
    await stage.mount('b', asked)
    stage.host.files = { ...files, replaceUntilBoot }
    await expect(stage.mount('a', asked)).rejects.toThrow(/ENOSPC/)
    expect(stage.warnings.join()).toMatch(/could not release the lock of .*: cannot use .*EIO/)
    stage.host.files = files
    await stage.mount('a', asked)
    expect(stage.layers('a')).toHaveLength(1)
  })

  it("a mount that cannot remove its volume's records keeps its mount record, and the unmount removes them", async () => {
    const { files } = stage.host
    let isBroken = false
    const replaceUntilBoot = (path: string, text: string) => {
      isBroken ||= /ownership/.test(path)
      return isBroken ? refuse(path) : files.replaceUntilBoot(path, text)
    }
    const list = (path: string) => (isBroken && /ownership/.test(path) ? refuse(path) : files.list(path))
    stage.host.files = { ...files, replaceUntilBoot, list }
    await expect(stage.mount('a', asked)).rejects.toThrow(/ENOSPC/)
    stage.host.files = files
    expect(below('ownership')).toHaveLength(1)
    await stage.unmount('a')
    expect(below('ownership')).toEqual([])
    expect(below('mounts')).toEqual([])
  })

  it("a completed replacement succeeds with a warning if the former volume's records cannot be read", async () => {
    const { files } = stage.host
    makeTree(stage.fs, `${stage.top}/volumes/two`, ['file second 0644'])
    await stage.mount('a', asked)
    const [former = ''] = listVolumesWithRecords(stage)
    stage.host.files = { ...files, list: (path) => (path.includes(former) ? refuse(path) : files.list(path)) }
    await stage.mount('a', { source: `${stage.top}/volumes/two` })
    expect(Object.keys(stage.shown('a')).sort()).toEqual(['.', 'second'])
    expect(stage.warnings.join()).toMatch(/could not remove the leftovers of volume .*: cannot use .*ENOSPC/)
    stage.host.files = files
  })

  it('heal does not report a record as forgotten that it could not remove', async () => {
    await stage.mount('a', { source: asked.source ?? '' })
    await stage.unmount('a')
    await stage.mount('a', { source: asked.source ?? '' })
    stage.reboot()
    stage.fs.rmSync(`${stage.top}/pods/a`, { recursive: true })
    const { files } = stage.host
    stage.host.files = { ...files, remove: (path) => refuse(path) }
    expect(await stage.heal()).toMatchObject([{ action: 'failed', reason: expect.stringContaining('ENOSPC') }])
    stage.host.files = files
    expect(await stage.heal()).toMatchObject([{ state: 'orphaned', action: 'forgotten' }])
    expect(below('mounts')).toEqual([])
  })

  it('heal releases the lock of an unreadable record, as kubelet waits for it', async () => {
    await stage.mount('a', asked)
    const { files, inodes, mounts, tryLock } = stage.host
    const parent = inodes.openTrusted(stage.podDirectory('a').replace(/\/v$/, ''))
    mounts.detach(parent, Buffer.from('v'))
    inodes.close(parent)
    stage.host.tryLock = (path) => {
      if (/mounts/.test(path)) stage.host.files = { ...files, read: broken, list: broken }
      return tryLock(path)
    }
    expect(await stage.heal()).toMatchObject([{ action: 'failed', reason: expect.stringContaining('EIO') }])
    Object.assign(stage.host, { files, tryLock })
    expect(stage.warnings.join()).toMatch(/could not release the lock of .*: cannot use .*EIO/)
    await stage.mount('a', asked)
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('heal removes the leftovers of a mount without a record, and no other files', async () => {
    await stage.mount('a', asked)
    const before = stage.host.files.list(`${stage.config.stateDir}/mounts`)
    for (const name of ['%2Fempty', '%2Flocked', '%2Flong/+er', '%2Fbusy']) {
      stage.fs.mkdirSync(`${stage.config.stateDir}/mounts/${name}`, { recursive: true })
    }
    for (const name of ['%2Flocked/lock', '%2Flong/+er/lock', '%2Flong/+er/record.json.new']) {
      stage.fs.writeFileSync(`${stage.config.stateDir}/mounts/${name}`, '')
    }
    const lock = stage.host.tryLock(`${stage.config.stateDir}/mounts/%2Fbusy/lock`)
    expect(await stage.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
    expect(below('mounts').sort()).toEqual([...before, '%2Fbusy'].sort())
    lock?.release()
    await stage.heal()
    expect(below('mounts')).toEqual(before)
  })

  it('heal removes the lock of a volume without a record', async () => {
    const volume = `${stage.config.stateDir}/ownership/1-2-3`
    stage.fs.mkdirSync(volume, { recursive: true })
    stage.fs.writeFileSync(`${volume}/lock`, '')
    await stage.heal(true)
    expect(below('ownership')).toEqual(['1-2-3'])
    await stage.heal()
    expect(below('ownership')).toEqual([])
  })
})
