import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type FileChange, type FileChangeBatch, SystemError } from '../../src/kernel/host.ts'
import type { WalkReport } from '../../src/ownership/walk/report.ts'
import { requireProgram } from '../helpers/needs.ts'
import { disableBatches } from '../helpers/single-calls.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'
import { accessAcl, acl, setAttributes } from './attributes.ts'

/** Files whose ctime is younger than the first are not given to other threads, and than the second not to be opened. */
const RECENT_MS = 200
const LONG_AGO_MS = 1100
/** At most this many were not made: the caller checks each. */
const MOST = 10_000
const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

onKernelStages('a walk with changes by other threads', (open) => {
  let stage: Stage
  let source = ''
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const asked = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
  const mount = (more: Record<string, string> = {}) => stage.mount('a', { source, ...asked, ...more })
  const report = () => stage.noted.inodes as WalkReport
  const now = () => listTree(stage.fs, source)
  const handles = () => stage.fs.readdirSync('/proc/self/fd').length

  const MANY = Array.from({ length: 3000 }, (_, index) => `file many/${index} 0640`)

  /** Directories of several sizes, one with most of the files, all three kinds of privileges and a chain of directories. */
  async function arrange(age = RECENT_MS): Promise<ReturnType<typeof now>> {
    makeTree(stage.fs, source, [
      'file suid 4755',
      'file sgid 2755 7',
      'link out ../../elsewhere',
      `dir ${'deep/'.repeat(50)}end 0700`,
      ...MANY,
      ...Array.from({ length: 900 }, (_, index) => `file some/${index % 90}/${index} 0600 5`),
    ])
    await wait(age)
    return now()
  }

  async function expectRestored(before: ReturnType<typeof now>): Promise<void> {
    await stage.unmount('a')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  }

  /** Puts something between a walk and the threads. */
  function between(over: (changes: FileChangeBatch) => Partial<FileChangeBatch>): void {
    const { inodes } = stage.host
    stage.host.inodes = {
      ...inodes,
      changes(size) {
        const changes = inodes.changes(size) ?? expect.unreachable()
        return {
          set: (at, change) => changes.set(at, change),
          start: (count) => changes.start(count),
          finish: () => changes.finish(),
          outcome: (at) => changes.outcome(at),
          [Symbol.dispose]: () => changes[Symbol.dispose](),
          ...over(changes),
        }
      },
    }
  }

  /** Lets `then` happen once, when a batch has been recorded and is about to be changed. */
  function beforeStart(then: () => void): void {
    let first = true
    between((changes) => ({
      start(count) {
        if (first && count > 0) {
          first = false
          then()
        }
        changes.start(count)
      },
    }))
  }

  /** How many changes are given to threads from now on. */
  function given(): { readonly count: number } {
    const seen = { count: 0 }
    between((changes) => ({
      start(count) {
        seen.count += count
        changes.start(count)
      },
    }))
    return seen
  }

  it('changes every inode once, and a restore returns everything', async () => {
    const before = await arrange()
    const open = handles()
    const toThreads = given()
    await mount()
    const total = Object.keys(before).length
    expect(report()).toMatchObject({ visited: total, changed: total - 1, alreadyRight: 0 })
    expect(report().left).toEqual({ symlink: { count: 1, examples: ['out'] } })
    const { out, ...others } = groups(now())
    expect(out).toBe(0)
    expect(new Set(Object.values(others))).toEqual(new Set([2000]))
    expect(toThreads.count).toBe(3900)
    await stage.unmount('a')
    expect(report()).toMatchObject({ visited: total, changed: total - 1 })
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
    expect(toThreads.count).toBe(7800)
    expect(handles()).toBe(open)
  })

  it('changes nothing if the volume already has the group', async () => {
    await arrange()
    await mount({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    const walked = now()
    await mount({ restoreOnUnmount: 'false', fsGroupChangePolicy: 'Always' })
    expect(report()).toMatchObject({ changed: 0, alreadyRight: Object.keys(walked).length - 1 })
    expect(now()).toEqual(walked)
  })

  it('changes the volume to another group, and a restore returns the first state', async () => {
    const before = await arrange()
    await mount({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    await mount({ 'kubernetes.io/fsGroup': '3000' })
    expect(report()).toMatchObject({ changed: Object.keys(before).length - 1 })
    expect(groups(now())['many/17']).toBe(3000)
    await expectRestored(before)
  })

  it('sets permission bits with "grant", and a restore removes them', async () => {
    const before = await arrange(LONG_AGO_MS)
    const toThreads = given()
    await mount({ groupAccess: 'grant' })
    expect(toThreads.count).toBe(3900)
    expect(modes(now())).toMatchObject({ 'many/17': '0660', 'some/17/17': '0660', suid: '4775' })
    await expectRestored(before)
  })

  it('has the same result with one thread as with several', async () => {
    const before = await arrange(LONG_AGO_MS)
    const { inodes } = stage.host
    const walked = async () => {
      await mount({ groupAccess: 'grant' })
      const walk = { groups: groups(now()), modes: modes(now()), report: report() }
      await expectRestored(before)
      return { ...walk, restored: report() }
    }
    const toThreads = given()
    const withThem = await walked()
    expect(toThreads.count).toBe(7800)
    stage.host.inodes = { ...inodes, changes: () => undefined }
    expect(await walked()).toEqual(withThem)
    stage.host.inodes = disableBatches(inodes)
    expect(await walked()).toEqual(withThem)
  })

  it('changes a file with names in many directories once if all names are inside', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `d${index}`)
    makeTree(stage.fs, source, [
      ...names.flatMap((name) => Array.from({ length: 60 }, (_, index) => `file ${name}/${index} 0640`)),
      'file whole 0640',
      'file shared 0640',
      ...names.flatMap((name) => [`hard ${name}/whole whole`, `hard ${name}/shared shared`]),
    ])
    stage.fs.linkSync(`${source}/shared`, `${stage.top}/elsewhere`)
    await letTicksPass()
    await mount()
    expect(groups(now())).toMatchObject({ whole: 2000, shared: 0, 'd7/whole': 2000 })
    expect(report().left['linked outside the volume']?.count).toBe(1)
    expect(report().changed).toBe(2400 + 40 + 1 + 1)
    await stage.unmount('a')
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([0]))
  })

  it('ends with the first error, mounts nothing, and the next call continues', async () => {
    const before = await arrange()
    const open = handles()
    const { inodes } = stage.host
    // What a thread cannot change the walk tries itself, which says why.
    between((changes) => ({ set: (at, change) => changes.set(at, at === 300 ? unmet(change) : change) }))
    stage.host.inodes.chown = () => {
      throw new SystemError('fchownat', 'EIO', 'an open handle')
    }
    await expect(mount()).rejects.toThrow('EIO')
    expect(stage.layers('a')).toEqual([])
    expect(handles()).toBe(open)
    stage.host.inodes = inodes
    await mount()
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000, 0]))
    await expectRestored(before)
    expect(handles()).toBe(open)
  })

  it('changes on the main thread each inode that another thread could not change', async () => {
    const before = await arrange()
    between((changes) => ({ set: (at, change) => changes.set(at, at % 100 === 0 ? unmet(change) : change) }))
    await mount()
    expect(report()).toMatchObject({ changed: Object.keys(before).length - 1, left: { symlink: { count: 1 } } })
    expect(groups(now())).toMatchObject({ 'many/0': 2000, 'many/100': 2000, 'some/1/1': 2000 })
    await expectRestored(before)
  })

  it('keeps a mode that a user sets after the chown and before the chmod', async () => {
    await arrange(LONG_AGO_MS)
    between((changes) => {
      let isUnderWay = false
      return {
        set(at, change) {
          isUnderWay ||= stage.host.inodes.pathOf(change.handle).endsWith('/many/7')
          changes.set(at, {
            ...change,
            handle: stage.host.inodes.duplicate(change.handle),
            mode: change.seenMode & 0o7777,
          })
        },
        finish() {
          changes.finish()
          if (isUnderWay) stage.fs.chmodSync(`${source}/many/7`, 0o604)
          isUnderWay = false
          return MOST
        },
        outcome: (at) => (changes.outcome(at) === 'made' ? 'half' : changes.outcome(at)),
      }
    })
    await mount({ groupAccess: 'grant' })
    expect(now()['many/7']).toMatchObject({ mode: '0604', gid: 2000 })
    expect(report().left['changed during the walk']?.examples).toEqual(['many/7'])
  })

  it('completes an inode that has its group but not its permission bits', async () => {
    const before = await arrange(LONG_AGO_MS)
    between((changes) => ({
      set: (at, change) =>
        changes.set(at, {
          ...change,
          handle: stage.host.inodes.duplicate(change.handle),
          mode: change.seenMode & 0o7777,
        }),
      finish() {
        changes.finish()
        return MOST
      },
      outcome: (at) => (changes.outcome(at) === 'made' ? 'half' : changes.outcome(at)),
    }))
    await mount({ groupAccess: 'grant' })
    expect(now()['many/7']).toMatchObject({ mode: '0660', gid: 2000 })
    expect(report().changed).toBe(Object.keys(before).length - 1)
  })

  it('skips an inode that was changed after its inspection, and the next walk changes that inode', async () => {
    // Fewer than a batch: it has all of them.
    makeTree(stage.fs, source, MANY.slice(0, 300))
    await wait(RECENT_MS)
    const changed = ['many/3', 'many/4', 'many/5']
    beforeStart(() => {
      stage.fs.chmodSync(`${source}/many/3`, 0o604)
      stage.fs.chownSync(`${source}/many/4`, 0, 9)
      stage.fs.chmodSync(`${source}/many/5`, 0o4755)
    })
    await mount()
    expect(report().left['changed during the walk']).toMatchObject({ count: 3 })
    expect(report().left['changed during the walk']?.examples.toSorted()).toEqual(changed)
    expect(now()['many/3']).toMatchObject({ mode: '0604', gid: 0 })
    expect(now()['many/4']).toMatchObject({ mode: '0640', gid: 9 })
    expect(now()['many/5']).toMatchObject({ mode: '4755', gid: 0 })
    expect(groups(now())).toMatchObject({ 'many/2': 2000, 'many/6': 2000 })
    await stage.unmount('a')
    const left = now()
    expect(groups(left)).toMatchObject({ 'many/3': 0, 'many/4': 9, 'many/5': 0, 'many/2': 0 })
    await mount({ fsGroupChangePolicy: 'Always' })
    // Its record exists, and a group that differs from it is a user's change.
    expect(report().left).toEqual({ 'changed since by its user': { count: 1, examples: ['many/4'] } })
    expect(groups(now())).toMatchObject({ 'many/3': 2000, 'many/4': 9, 'many/5': 2000 })
    await expectRestored(left)
  })

  it('adds no rights to the mask of an ACL that was set after the inspection', async () => {
    makeTree(stage.fs, source, MANY.slice(0, 300))
    await wait(LONG_AGO_MS)
    const given = acl('u::rw-,u:7:rw-,g::r--,m::r--,o::---')
    beforeStart(() => setAttributes(source, { 'many/7': { 'system.posix_acl_access': given } }))
    await mount({ groupAccess: 'grant' })
    expect(now()['many/7']).toMatchObject({ mode: '0640', gid: 0 })
    expect(now()['many/8']).toMatchObject({ mode: '0660', gid: 2000 })
    expect(accessAcl(`${source}/many/7`)?.find(({ tag }) => tag === 0x10)?.perm).toBe(4)
    expect(report().left['changed during the walk']).toEqual({ count: 1, examples: ['many/7'] })
  })

  it.for([
    ['before the inspection', 'keep'],
    ['before the inspection', 'grant'],
    ['after the inspection', 'keep'],
    ['after the inspection', 'grant'],
  ] as const)(
    'skips inodes that became immutable %s, with %s, and changes the rest',
    async ([when, access], { skip }) => {
      makeTree(stage.fs, source, [...MANY.slice(0, 600), 'file many/granted 0640 2000'])
      const flag = (what: string, names: string[]) =>
        execFileSync(requireProgram('chattr'), [what, ...names.map((name) => `${source}/${name}`)])
      try {
        flag('+i', ['many/1'])
        flag('-i', ['many/1'])
      } catch {
        skip('this file system has no immutable attribute before Linux 6.6')
      }
      const before = now()
      await wait(LONG_AGO_MS)
      const still = ['many/11', 'many/333', ...(access === 'grant' ? ['many/granted'] : [])]
      if (when === 'before the inspection') flag('+i', still)
      else beforeStart(() => flag('+i', still))
      try {
        await mount({ groupAccess: access })
        const left = report().left['immutable or append-only']
        expect({ ...left, examples: left?.examples.toSorted() }).toEqual({ count: still.length, examples: still })
        const after = now()
        for (const name of still) {
          expect(after[name]).toMatchObject({ gid: before[name]?.gid, mode: before[name]?.mode })
        }
        const others = Object.keys(before).filter((name) => !still.includes(name))
        expect(new Set(others.map((name) => after[name]?.gid))).toEqual(new Set([2000]))
        expect(report().changed).toBe(others.length - (access === 'grant' ? 0 : 1))
      } finally {
        flag('-i', still)
      }
      await expectRestored(before)
      await mount({ fsGroupChangePolicy: 'Always', groupAccess: access })
      expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
    },
  )
})

/** A change whose thread does not find its file. */
function unmet(change: FileChange): FileChange {
  return { ...change, seenGroup: 77_777 }
}
