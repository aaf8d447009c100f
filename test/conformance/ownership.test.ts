import { afterEach, beforeEach, expect, it } from 'vitest'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, letTicksPass, listTree, makeTree, modes } from '../helpers/tree.ts'

onEveryStage('ownership by walk', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const asked = (group: number, more: Record<string, string> = {}) => ({
    'kubernetes.io/fsGroup': String(group),
    ownership: 'walk',
    source,
    ...more,
  })
  const now = () => listTree(stage.fs, source)
  const left = () => (stage.noted.inodes as { left: Record<string, { count: number; examples: string[] }> }).left

  it('applies the group, sets set-gid on directories, and adds no permission bit', async () => {
    makeTree(stage.fs, source, ['dir a 0700', 'dir a/b 0755', 'file a/b/c 0640', 'file a/d 0000'])
    await stage.mount('a', asked(2000))
    expect(modes(now())).toEqual({ '.': '2755', a: '2700', 'a/b': '2755', 'a/b/c': '0640', 'a/d': '0000' })
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
  })

  it('does not change an inode that has the requested group and mode', async () => {
    makeTree(stage.fs, source, ['file right 0640 2000', 'file wrong 0640 5'])
    const before = now()
    await stage.mount('a', asked(2000))
    expect(now().right).toEqual(before.right)
    expect(stage.noted.inodes).toMatchObject({ visited: 3, changed: 2, alreadyRight: 1 })
  })

  it('keeps set-uid and set-gid of files', async () => {
    makeTree(stage.fs, source, ['file suid 4755', 'file sgid 2755', 'file both 6711', 'file lock 2644'])
    const before = modes(now())
    await stage.mount('a', asked(2000))
    expect(modes(now())).toEqual({ ...before, '.': '2755' })
  })

  it('neither follows nor changes links, including links that lead out', async () => {
    makeTree(stage.fs, source, [
      'file inside 0644',
      'link in inside',
      'link out ../../outside',
      'link dangling nowhere',
    ])
    makeTree(stage.fs, `${stage.top}/outside`, ['file secret 0600'])
    const outside = listTree(stage.fs, `${stage.top}/outside`)
    const before = now()
    await stage.mount('a', asked(2000))
    for (const name of ['in', 'out', 'dangling']) expect(now()[name]).toEqual(before[name])
    expect(listTree(stage.fs, `${stage.top}/outside`)).toEqual(outside)
    expect(left().symlink?.count).toBe(3)
  })

  it('changes a hard-linked file only if all its names are inside the volume', async () => {
    makeTree(stage.fs, source, ['file whole/a 0644', 'hard whole/b whole/a', 'file shared 0644'])
    stage.fs.linkSync(`${source}/shared`, `${stage.top}/elsewhere`)
    await letTicksPass()
    await stage.mount('a', asked(2000))
    expect(groups(now())).toMatchObject({ 'whole/a': 2000, 'whole/b': 2000, shared: 0 })
    expect(left()['linked outside the volume']).toEqual({ count: 1, examples: ['shared'] })
  })

  it('skips a volume whose root has the group, and walks the complete volume with fsGroupChangePolicy Always', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    await stage.mount('a', asked(2000))
    await stage.unmount('a')
    makeTree(stage.fs, source, ['file new 0644'])
    stage.fs.chmodSync(source, 0o2755)
    stage.fs.chownSync(`${source}/new`, 0, 0)
    await stage.mount('a', asked(2000))
    expect(stage.noted.ownership).toMatch(/not walked/)
    expect(groups(now()).new).toBe(0)
    await stage.unmount('a')
    await stage.mount('a', asked(2000, { fsGroupChangePolicy: 'Always' }))
    expect(groups(now()).new).toBe(2000)
  })

  it('skips inodes that users changed since: their stricter modes and their groups stay', async () => {
    makeTree(stage.fs, source, ['file tightened 0664', 'file regrouped 0644', 'dir plain 0755'])
    await stage.mount('a', asked(2000))
    stage.fs.chmodSync(`${source}/tightened`, 0o600)
    stage.fs.chownSync(`${source}/regrouped`, 0, 77)
    stage.fs.chmodSync(`${source}/plain`, 0o755)
    await stage.unmount('a')
    const before = now()
    await stage.mount('a', asked(2000, { fsGroupChangePolicy: 'Always' }))
    expect(now()).toEqual(before)
    expect(left()['changed since by its user']?.count).toBe(2)
  })

  it("applies another group after the first pod's end, and restores the first state", async () => {
    makeTree(stage.fs, source, ['file a 0644 5', 'dir d 0750 6'])
    const before = now()
    await stage.mount('a', asked(2000))
    await stage.unmount('a')
    await stage.mount('b', asked(3000, { restoreOnUnmount: 'true' }))
    expect(groups(now())).toEqual({ '.': 3000, a: 3000, d: 3000 })
    await stage.unmount('b')
    expect(groups(now())).toEqual(groups(before))
    expect(modes(now())).toEqual(modes(before))
  })

  it('has no records of a volume that was restored completely', async () => {
    makeTree(stage.fs, source, ['file a 0644 5', 'dir d 0750 6'])
    const remembered = () => stage.host.files.list(`${stage.config.stateDir}/ownership`)
    await stage.mount('a', asked(2000))
    await stage.unmount('a')
    expect(remembered()).toHaveLength(1)
    await stage.mount('a', asked(2000, { restoreOnUnmount: 'true' }))
    await stage.unmount('a')
    expect(remembered()).toEqual([])
  })

  it('with groupAccess "grant" after "keep" adds the bits except to files that a user made stricter, and "keep" after "grant" removes none', async () => {
    makeTree(stage.fs, source, ['file open 0640 5', 'file tight 0640 5', 'dir d 0750', 'file d/program 0711'])
    const before = now()
    await stage.mount('a', asked(2000))
    await stage.unmount('a')
    stage.fs.chmodSync(`${source}/tight`, 0o600)
    await stage.mount('a', asked(2000, { groupAccess: 'grant' }))
    const granted = { '.': '2775', open: '0660', tight: '0600', d: '2770', 'd/program': '0771' }
    expect(modes(now())).toEqual(granted)
    expect(left()['changed since by its user']).toEqual({ count: 1, examples: ['tight'] })
    await stage.unmount('a')
    await stage.mount('a', asked(2000, { restoreOnUnmount: 'true' }))
    expect(stage.noted.ownership).toMatch(/not walked/)
    expect(modes(now())).toEqual(granted)
    await stage.unmount('a')
    expect(modes(now())).toEqual({ ...modes(before), tight: '0600' })
    expect(groups(now())).toEqual({ ...groups(before), tight: 2000 })
  })

  it('refuses a second group while the first is mounted, and names its pod', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    await stage.mount('a', asked(2000, { 'kubernetes.io/pod.name': 'web', 'kubernetes.io/pod.namespace': 'shop' }))
    const before = now()
    await expect(stage.mount('b', asked(3000))).rejects.toThrow(
      /belongs to group 2000 while pod shop\/web uses .*\/volumes\/data/,
    )
    expect(now()).toEqual(before)
    expect(stage.layers('b')).toEqual([])
    await stage.mount('b', asked(2000))
    expect(stage.layers('b')).toHaveLength(1)
  })

  it('does not name a pod of another namespace in the event, only in the log', async () => {
    makeTree(stage.fs, source, ['file a 0644'])
    const of = (name: string, namespace: string) => ({
      'kubernetes.io/pod.name': name,
      'kubernetes.io/pod.namespace': namespace,
    })
    await stage.mount('a', asked(2000, of('web', 'shop')))
    const refused = await stage.mount('b', asked(3000, of('cart', 'bank'))).catch(({ message }) => message)
    expect(refused).toMatch(
      /^the volume belongs to group 2000 while a pod of another namespace uses it or a part of it, so/,
    )
    expect(refused).not.toMatch(/shop|web|\/pods\//)
    expect(stage.noted.heldBy).toMatchObject({ pod: 'shop/web', source })
    await expect(stage.mount('b', asked(3000, of('cart', 'shop')))).rejects.toThrow(/while pod shop\/web uses/)
  })

  it('restores unchanged inodes, and skips inodes that users changed since', async () => {
    makeTree(stage.fs, source, ['file kept 0640 5', 'file changed 0640 5', 'file gone 0640 5', 'file suid 4755 5'])
    await stage.mount('a', asked(2000, { restoreOnUnmount: 'true' }))
    stage.fs.chmodSync(`${source}/changed`, 0o600)
    stage.fs.rmSync(`${source}/gone`)
    await stage.unmount('a')
    expect(groups(now())).toEqual({ '.': 0, kept: 5, changed: 2000, suid: 5 })
    expect(modes(now())).toEqual({ '.': '0755', kept: '0640', changed: '0600', suid: '4755' })
    expect(left()['changed since by its user']).toEqual({ count: 1, examples: ['changed'] })
  })

  it('walks a tree deeper than the limit of open handles, and a directory larger than one read', async () => {
    const deep = Array.from({ length: 80 }, (_, n) => `d${n}`).join('/')
    makeTree(stage.fs, source, [
      `file ${deep}/end 0644`,
      ...Array.from({ length: 3000 }, (_, n) => `file wide/f${n} 0644`),
    ])
    await stage.mount('a', asked(2000))
    expect(new Set(Object.values(groups(now())))).toEqual(new Set([2000]))
    expect(stage.noted.inodes).toMatchObject({ visited: 80 + 1 + 3000 + 1 + 1, left: {} })
  })
})
