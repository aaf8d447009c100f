import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { formatStatus } from '../../src/cli/commands/status-text.ts'
import type { FlexVolumeReply } from '../../src/frontends/flexvolume/protocol.ts'
import { answerVolumeCall } from '../../src/frontends/flexvolume/volume-call.ts'
import { createCallLog } from '../../src/log/call-log.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const title = `inodes that a walk skips${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const TREE = Array.from({ length: 20 }, (_, n) => `file f${n} 0640 5`)

describe.skipIf(!isRoot)(title, () => {
  let stage: Stage
  let source: string
  let lines: { inodes?: { left: Record<string, { examples: string[] }> } }[]
  beforeEach(() => {
    stage = kernelStage('ext4')
    source = `${stage.top}/volumes/data`
    makeTree(fs, source, TREE)
    fs.chmodSync(source, 0o755)
    lines = []
  })
  afterEach(() => {
    for (const path of [source, ...fs.readdirSync(source).map((name) => `${source}/${name}`)]) chattr('-ia', path)
    for (const pod of ['a', 'b']) for (const _ of stage.layers(pod)) execFileSync('umount', [stage.podDirectory(pod)])
    stage.close()
  })

  const chattr = (flag: string, path: string) => execFileSync(requireProgram('chattr'), [flag, path])
  const group = (path = source) => fs.statSync(path).gid

  function answer(verb: 'mount' | 'unmount', pod: string, more: Record<string, string> = {}): Promise<FlexVolumeReply> {
    const directory = stage.podDirectory(pod)
    fs.mkdirSync(directory, { recursive: true })
    const options: Record<string, string> = { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', ...more }
    for (const [key, value] of Object.entries(options)) if (value === '') delete options[key]
    const log = createCallLog({ verb, directory }, 'info', (line) => lines.push(JSON.parse(line)))
    const { host, config } = stage
    const process = { host, config, log, configFaults: [], forbidCoreDumps() {} }
    return answerVolumeCall({ verb, directory, options: JSON.stringify(options) }, process)
  }
  async function statusOf() {
    const document = await readSelectedStatus(stage.session())
    const text = formatStatus(document, 0).map((line) => (typeof line === 'string' ? line : line.text))
    return { ...document, text: text.join('\n') }
  }
  function changeAll(uid: number, gid: number, mode: number): void {
    execFileSync('chown', ['-R', `${uid}:${gid}`, source])
    fs.chmodSync(source, mode)
  }

  it('a new mount fails and changes nothing if the root is immutable', async () => {
    chattr('+i', source)
    expect(await answer('mount', 'a')).toEqual({
      status: 'Failure',
      message: expect.stringMatching(
        /group 2000 cannot be applied to the root of .*data, which has group 0: .*immutable.*chattr -i -a/,
      ),
    })
    expect(stage.layers('a')).toEqual([])
    expect([group(), group(`${source}/f0`)]).toEqual([0, 5])
    chattr('-i', source)
    expect((await answer('mount', 'a')).status).toBe('Success')
    expect(group()).toBe(2000)
  })

  it('a new mount fails if the kernel rejects the change of the root', async () => {
    const { inodes } = stage.host
    const inode = BigInt(fs.statSync(source).ino)
    stage.host.inodes = {
      ...inodes,
      chown(handle, gid) {
        if (inodes.stat(handle).inode !== inode) return inodes.chown(handle, gid)
        throw Object.assign(new Error('chown: EPERM'), { code: 'EPERM' })
      },
    }
    expect(await answer('mount', 'a')).toEqual({
      status: 'Failure',
      message: expect.stringMatching(/group 2000 cannot be applied to the root of .*data/),
    })
    expect(lines.at(-1)?.inodes?.left['immutable or append-only']?.examples).toEqual(['.'])
    expect(stage.layers('a')).toEqual([])
  })

  it('a repeated mount succeeds and is "partial" in status if the root has lost the group', async () => {
    await answer('mount', 'a')
    changeAll(0, 0, 0o755)
    chattr('+i', source)
    expect((await answer('mount', 'a')).status).toBe('Success')
    expect((await statusOf()).mounts).toMatchObject([
      { state: 'partial', reason: expect.stringMatching(/root .*has group 0 .*not 2000/) },
    ])
  })

  it('ownership "walk" of a pod without an fsGroup is reported', async () => {
    const message = expect.stringContaining('the pod has no fsGroup')
    expect(await answer('mount', 'a', { 'kubernetes.io/fsGroup': '' })).toEqual({ status: 'Success', message })
    expect(await answer('mount', 'a', { 'kubernetes.io/fsGroup': '' })).toEqual({ status: 'Success', message })
    expect((await statusOf()).mounts).toMatchObject([{ ownership: 'none', why: message }])
  })

  it('ownership "idmap" of a pod without an fsGroup is reported', async () => {
    const message = expect.stringContaining('the pod has no fsGroup')
    expect(await answer('mount', 'a', { ownership: 'idmap', 'kubernetes.io/fsGroup': '' })).toEqual({
      status: 'Success',
      message,
    })
  })

  it.each([
    ['Success', 'its group may use the root', 1234, 2000, 0o770],
    ['Success', 'others may use the root', 1234, 1234, 0o777],
    ['Failure', 'its group may not write', 1234, 2000, 0o750],
    ['Failure', 'its group may not search', 1234, 2000, 0o760],
    ['Failure', 'only others have access', 0, 1234, 0o755],
    ['Failure', 'the root is private', 0, 0, 0o700],
  ])('after chown -R a new mount is %s if %s, with the counts', async (expected, _, uid, gid, mode) => {
    await answer('mount', 'a')
    await answer('unmount', 'a')
    changeAll(uid, gid, mode)
    if (gid === 2000) for (const name of fs.readdirSync(source)) fs.chownSync(`${source}/${name}`, uid, 1234)
    for (let call = 0; call < 2; call++) {
      const reply = await answer('mount', 'b')
      expect(reply).toMatchObject({ status: expected, message: expect.stringContaining('0 of 21, changed since') })
      const command = 'modekeep apply DIR --fsgroup 2000 --force'
      if (expected === 'Failure') expect(reply).toMatchObject({ message: expect.stringContaining(command) })
    }
    expect((await statusOf()).text).toContain('0 of 21, changed since')
  })

  it('an existing mount stays if the owner made the root of the volume private', async () => {
    await answer('mount', 'a')
    await answer('unmount', 'a')
    fs.chownSync(source, 999, 2000)
    fs.chmodSync(source, 0o700)
    expect((await answer('mount', 'b')).status).toBe('Success')
  })

  it("a root with another group is accepted if a named group entry of its ACL gives the pod's group access", async () => {
    await answer('mount', 'a')
    await answer('unmount', 'a')
    changeAll(0, 0, 0o700)
    // u32 version, then {u16 tag, u16 bits, u32 id}: user, group, group 2000, mask, other.
    const acl = '02000000 01000700ffffffff 04000000ffffffff 08000700d0070000 10000700ffffffff 20000000ffffffff'
    const value = `0x${acl.replaceAll(' ', '')}`
    execFileSync(requireProgram('setfattr'), ['-n', 'system.posix_acl_access', '-v', value, source])
    expect((await answer('mount', 'b')).status).toBe('Success')
  })

  it('the reply, the repeated reply, status and the JSON of status report count, reason and an example of skipped inodes', async () => {
    chattr('+i', `${source}/f7`)
    chattr('+a', `${source}/f8`)
    const text = /group 2000 was applied to 19 of 21, immutable or append-only: 2 \(first "f[78]"\)/
    for (let call = 0; call < 2; call++) {
      expect(await answer('mount', 'a')).toEqual({ status: 'Success', message: expect.stringMatching(text) })
    }
    expect(await answer('mount', 'b')).toEqual({ status: 'Success', message: expect.stringMatching(text) })
    const { volumes, mounts, text: table } = await statusOf()
    expect(mounts).toMatchObject([{ state: 'partial' }, { state: 'partial' }])
    expect(volumes).toMatchObject([
      {
        skipped: {
          applied: 19,
          total: 21,
          reasons: [{ reason: 'immutable or append-only', count: 2, example: expect.stringMatching(/^f[78]$/) }],
        },
      },
    ])
    expect(table).toMatch(text)
  })

  it('a walk that skips nothing has no message', async () => {
    expect(await answer('mount', 'a')).toEqual({ status: 'Success' })
    expect((await statusOf()).volumes).toMatchObject([{ skipped: null }])
  })
})
