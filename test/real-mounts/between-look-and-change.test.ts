import { execFileSync } from 'node:child_process'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { type Inodes, SystemError } from '../../src/kernel/host.ts'
import type { WalkReport } from '../../src/ownership/walk/report.ts'
import { disableBatches } from '../helpers/single-calls.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import { accessAcl, acl, setAttributes } from './attributes.ts'

onKernelStages('a change between the inspection of an inode and its change by a walk', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    onTestFinished(() => stage.close())
  })

  const walk = (more: Record<string, string> = {}) =>
    stage.mount('a', {
      source,
      ownership: 'walk',
      'kubernetes.io/fsGroup': '2000',
      fsGroupChangePolicy: 'Always',
      ...more,
    })
  const now = () => listTree(stage.fs, source)
  const left = () => (stage.noted.inodes as WalkReport).left

  /** Runs `then` right before the last inspection of the first inode. */
  function beforeLastLook(then: (inodes: Inodes) => void): void {
    const { inodes } = stage.host
    let first = true
    stage.host.inodes = {
      ...disableBatches(inodes),
      ownership(handle) {
        if (first) then(inodes)
        first = false
        return inodes.ownership(handle)
      },
    }
  }

  it('makes the walk skip the inode, and the next walk changes the inode', async () => {
    makeTree(stage.fs, source, ['file f 0640 5'])
    beforeLastLook(() => stage.fs.chmodSync(`${source}/f`, 0o604))
    await walk()
    expect(left()['changed during the walk']).toEqual({ count: 1, examples: ['f'] })
    expect(now().f).toMatchObject({ mode: '0604', gid: 5 })
    await stage.unmount('a')
    await walk({ restoreOnUnmount: 'true' })
    expect(now().f).toMatchObject({ mode: '0604', gid: 2000 })
    await stage.unmount('a')
    expect(now().f).toMatchObject({ mode: '0604', gid: 5 })
  })

  it('adds no rights to a mask of an ACL that was set there', async () => {
    makeTree(stage.fs, source, ['file f 0640 5'])
    const given = acl('u::rw-,u:7:rw-,g::r--,m::r--,o::---')
    beforeLastLook(() => setAttributes(source, { f: { 'system.posix_acl_access': given } }))
    await walk({ groupAccess: 'grant' })
    expect(now().f).toMatchObject({ mode: '0640', gid: 5 })
    expect(accessAcl(`${source}/f`)?.find(({ tag }) => tag === 0x10)?.perm).toBe(4)
  })

  it('of a directory that cannot be opened again makes the walk fail, and the next walk is complete', async () => {
    const deep = Array.from({ length: 40 }, (_, level) => 'd/'.repeat(level + 1))
    makeTree(
      stage.fs,
      source,
      deep.flatMap((directory) => [`file ${directory}a 0600`, `file ${directory}z 0600`]),
    )
    const { inodes } = stage.host
    stage.host.inodes = {
      ...inodes,
      openDirectory(parent, name) {
        if (Buffer.from(name).toString() === '..') throw new SystemError('openat', 'EIO', '..')
        return inodes.openDirectory(parent, name)
      },
    }
    await expect(walk({ fsGroupChangePolicy: 'OnRootMismatch' })).rejects.toThrow('EIO')
    expect(stage.layers('a')).toEqual([])
    stage.host.inodes = inodes
    await walk({ fsGroupChangePolicy: 'OnRootMismatch' })
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
  })

  it('keeps set-gid of a former group only on unchanged content', async () => {
    makeTree(stage.fs, source, ['file written 2755', 'file kept 2755'])
    for (const name of ['written', 'kept']) {
      stage.fs.chownSync(`${source}/${name}`, 77, 0)
      stage.fs.chmodSync(`${source}/${name}`, 0o2755)
    }
    stage.fs.chmodSync(source, 0o755)
    execFileSync('chmod', ['o+x', `${stage.top}/volumes`])
    await walk({ restoreOnUnmount: 'true' })
    const user = ['--reuid', '77', '--regid', '77', '--groups', '2000']
    const script = `printf 'other content' > ${source}/written && chmod 2755 ${source}/written`
    execFileSync('setpriv', [...user, 'sh', '-c', script])
    expect(now().written).toMatchObject({ mode: '2755', gid: 2000 })
    await stage.unmount('a')
    expect(modes(now())).toMatchObject({ written: '0755', kept: '2755' })
    expect(groups(now())).toMatchObject({ written: 0, kept: 0 })
    expect(left()['privileges not given back']).toEqual({ count: 1, examples: ['written'] })
  })
})
