import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Crashing } from '../crash/every-call.ts'
import { journalPath } from '../crash/journal-files.ts'
import { expectSame, snapshot } from '../crash/volume.ts'
import { cannotInject, killAt, traceModekeep } from '../helpers/inject.ts'
import type { TracedCall } from '../helpers/strace-text.ts'

const suiteTitle = `a journal that a power cut damaged${cannotInject && ` (skipped: ${cannotInject})`}`

/** The calls on the journal's log up to the first change of an inode, and that change. */
function beforeFirstChange(calls: TracedCall[]) {
  const first = calls.findIndex(({ name }) => name === 'fchownat')
  const log = calls
    .slice(0, first)
    .filter(({ text }) => /^(pwrite64|fsync|fdatasync)\(\d+<[^>]*journal\.db-wal>/.test(text))
  const isSync = ({ name }: TracedCall) => name !== 'pwrite64'
  const last = log.findLastIndex(isSync)
  const earlier = log.slice(0, last).findLastIndex(isSync)
  return { log, last: log[last], begins: log[earlier + 1] }
}

describe.skipIf(cannotInject !== '')(suiteTitle, () => {
  it('has each change synced to disk before the change is made', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    const { log, last } = beforeFirstChange(await traceModekeep(on.node, on.mountCall('a')))
    expect(last).toBeDefined()
    expect(log.at(-1)).toBe(last)
    on.fresh()
    expect(await killAt(on.node, on.mountCall('a'), { name: 'fchownat', when: 2, text: '' })).toBe(true)
    const now = snapshot(on.source)
    expect(Object.keys(now).filter((path) => now[path]?.gid !== on.original[path]?.gid)).toHaveLength(1)
    fs.rmSync(on.node.log, { force: true })
    await on.mount('a')
    await on.unmount('a')
    on.expectOriginal()
  })

  it('at any point of its unsynced part: the next mount continues, and a restore returns the first state', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    const call = on.mountCall('a')
    const { last, begins } = beforeFirstChange(await traceModekeep(on.node, call))
    if (last === undefined || begins === undefined) throw new Error('no transaction before the first change')
    const deadAt = async (point: TracedCall) => {
      on.fresh()
      fs.rmSync(on.node.log, { force: true })
      expect(await killAt(on.node, call, point)).toBe(true)
      expectSame(snapshot(on.source), on.original)
      return fs.statSync(`${journalPath(on.node)}-wal`).size
    }
    const synced = await deadAt(begins)
    const written = await deadAt(last)
    expect(written).toBeGreaterThan(synced)
    for (const part of [0, 0.1, 0.5, 0.9, 0.999]) {
      await deadAt(last)
      fs.truncateSync(`${journalPath(on.node)}-wal`, synced + Math.floor(part * (written - synced)))
      await on.mount('a')
      await on.unmount('a')
      on.expectOriginal()
    }
  })

  const LOST: [string, (log: string) => void][] = [
    ['empty', (log) => fs.truncateSync(log, 0)],
    ['gone', (log) => fs.rmSync(log)],
    ['noise', (log) => fs.writeFileSync(log, Buffer.alloc(fs.statSync(log).size, 7))],
  ]

  it.each(LOST)(
    'during a walk, with its log %s: the mount is refused with the file named, and after a repair it restores',
    async (_, lose) => {
      const on = new Crashing('tmpfs')
      on.fresh()
      const call = on.mountCall('a')
      expect(await killAt(on.node, call, { name: 'fchownat', when: 6, text: '' })).toBe(true)
      const path = journalPath(on.node)
      const kept = ['', '-wal'].map((suffix) => [path + suffix, fs.readFileSync(path + suffix)] as const)
      lose(`${path}-wal`)
      const before = snapshot(on.source)
      const answer = await on.node.call(...call)
      expect(answer.message).toContain(`the ownership journal ${path} cannot be used (its log is lost, although`)
      expectSame(snapshot(on.source), before)
      await on.unmount('a')
      for (const suffix of ['-wal', '-shm']) fs.rmSync(path + suffix, { force: true })
      for (const [file, content] of kept) fs.writeFileSync(file, content)
      fs.rmSync(on.node.log)
      await on.mount('a')
      await on.unmount('a')
      on.expectOriginal()
    },
  )

  it('with a damaged shared index: SQLite makes a new one from the log', async () => {
    const on = new Crashing('tmpfs')
    on.fresh()
    expect(await killAt(on.node, on.mountCall('a'), { name: 'fchownat', when: 6, text: '' })).toBe(true)
    fs.writeFileSync(`${journalPath(on.node)}-shm`, Buffer.alloc(32768, 7))
    await on.mount('a')
    await on.unmount('a')
    on.expectOriginal()
  })
})
