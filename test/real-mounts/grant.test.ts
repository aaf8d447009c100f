import { execFileSync } from 'node:child_process'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import {
  type AclEntry,
  accessAcl,
  acl,
  attributes,
  effective,
  NAMED_GROUP,
  NAMED_USER,
  OWNING_GROUP,
  setAttributes,
} from './attributes.ts'
import { makeSocket } from './socket.ts'

const CAPABILITY_ATTRIBUTE = '0sAAAAAgAgAAAAAAAAAAAAAAAAAAA=' // cap_net_raw, permitted: struct vfs_cap_data revision 2
const MODES = ['0000', '0644', '0400', '0410', '0111', '0755', '0707', '4750', '2640', '6711', '1777', '2770']

/** Kubelet's SetVolumeOwnership: rw-rw---- for files, rwxrws--- for directories, added to what is there. */
const kubelets = (mode: string, directory: boolean) =>
  (Number.parseInt(mode, 8) | (directory ? 0o2770 : 0o660)).toString(8).padStart(4, '0')

onKernelStages('a walk with groupAccess "grant"', (open) => {
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
      groupAccess: 'grant',
      'kubernetes.io/fsGroup': '2000',
      restoreOnUnmount: 'true',
      ...more,
    })
  const now = () => listTree(stage.fs, source)
  const owners = () =>
    Object.fromEntries(Object.keys(now()).map((path) => [path, stage.fs.lstatSync(`${source}/${path}`).uid]))

  it("sets kubelet's mode and group on every file and directory, and a restore returns both", async () => {
    makeTree(
      stage.fs,
      source,
      MODES.flatMap((mode) => [`file f${mode} ${mode} 5`, `dir d${mode} ${mode} 6`]),
    )
    for (const mode of MODES) stage.fs.chownSync(`${source}/f${mode}`, 1000, 5)
    for (const mode of MODES) stage.fs.chmodSync(`${source}/f${mode}`, Number.parseInt(mode, 8))
    const before = now()
    const uids = owners()
    await walk()
    for (const [path, { mode, gid }] of Object.entries(now())) {
      const directory = path === '.' || path.startsWith('d')
      const was = before[path]?.mode ?? ''
      expect({ path, mode, gid }).toEqual({ path, mode: kubelets(was, directory), gid: 2000 })
    }
    expect(owners()).toEqual(uids)
    await stage.unmount('a')
    expect(modes(now())).toEqual(modes(before))
    expect(groups(now())).toEqual(groups(before))
  })

  it('changes FIFOs and sockets like files, and skips links and devices', async () => {
    makeTree(stage.fs, source, ['file a 0600', 'link l a', 'dir d 0700'])
    execFileSync('mkfifo', ['-m', '0600', `${source}/fifo`])
    execFileSync('mknod', ['-m', '0600', `${source}/null`, 'c', '1', '3'])
    await makeSocket(`${source}/socket`)
    stage.fs.chmodSync(`${source}/socket`, 0o700)
    const { l, null: device } = now()
    await walk()
    expect(modes(now())).toMatchObject({ a: '0660', d: '2770', fifo: '0660', socket: '0760' })
    expect(now()).toMatchObject({ l, null: device })
    await stage.unmount('a')
  })

  it('does not touch inodes that have group and bits already', async () => {
    makeTree(stage.fs, source, [
      'file right 4764 2000',
      'dir shared 3775 2000',
      'file tool 0770 2000',
      'file wrong 0640 2000',
    ])
    setAttributes(source, { tool: { 'security.capability': CAPABILITY_ATTRIBUTE } })
    const before = now()
    await walk({ fsGroupChangePolicy: 'Always' })
    const { right, shared, tool } = before
    expect(now()).toMatchObject({ right, shared, tool })
    expect(modes(now())).toMatchObject({ wrong: '0660' })
    await stage.unmount('a')
    expect(now()).toMatchObject({ right, shared, tool })
  })

  it('keeps set-uid, capabilities and times when it adds bits', async () => {
    makeTree(stage.fs, source, ['file suid 4711 5', 'file tool 0755 5', 'dir d 0755'])
    setAttributes(source, { tool: { 'security.capability': CAPABILITY_ATTRIBUTE, 'trusted.note': '0x6869' } })
    const xattrs = attributes(source)
    const names = ['suid', 'tool', 'd', '.']
    for (const name of names) stage.fs.utimesSync(`${source}/${name}`, 1000, 2000)
    const times = () =>
      names.map((name) => {
        const { atimeMs, mtimeMs } = stage.fs.lstatSync(`${source}/${name}`)
        return [name, atimeMs, mtimeMs]
      })
    const before = times()
    await walk()
    expect(times()).toEqual(before)
    expect(modes(now())).toMatchObject({ suid: '4771', tool: '0775', d: '2775' })
    expect(attributes(source)).toBe(xattrs)
    await stage.unmount('a')
    expect(attributes(source)).toBe(xattrs)
    expect(modes(now())).toMatchObject({ suid: '4711', tool: '0755', d: '0755' })
  })

  const ACLS = [
    'u::rw-,u:1000:rwx,g::r--,g:3000:rw-,m::r--,o::---',
    'u::r--,u:1000:---,g::---,g:3000:rwx,m::---,o::r--',
    'u::rwx,u:1000:rwx,g::rwx,g:3000:rwx,m::rwx,o::rwx',
    'u::rw-,u:1000:r--,g::rw-,g:3000:r--,m::r-x,o::---',
    'u::rw-,u:1000:-w-,g::--x,g:3000:r-x,m::-w-,o::---',
    'u::rw-,u:1000:rw-,g::r--,g:3000:rw-,g:2000:rwx,m::r--,o::---',
  ]

  it("adds the owning group's bits in an ACL, and no rights to named users or groups", async () => {
    makeTree(
      stage.fs,
      source,
      ACLS.flatMap((_, n) => [`file f${n} 0600 5`, `dir d${n} 0700 5`]),
    )
    const all = ACLS.flatMap((text, n) => [[`f${n}`, text] as const, [`d${n}`, text] as const])
    setAttributes(
      source,
      Object.fromEntries(all.map(([name, text]) => [name, { 'system.posix_acl_access': acl(text) }])),
    )
    const before = now()
    const xattrs = attributes(source)
    const entries = (name: string) => accessAcl(`${source}/${name}`) ?? []
    const were = new Map(all.map(([name]) => [name, entries(name)]))

    await walk()
    for (const [name] of all) {
      const directory = name.startsWith('d')
      expect({ name, mode: now()[name]?.mode }).toEqual({ name, mode: kubelets(before[name]?.mode ?? '', directory) })
      const is = entries(name)
      expect(effective(is, OWNING_GROUP) & (directory ? 7 : 6), name).toBe(directory ? 7 : 6)
      const was = were.get(name) ?? []
      expect(ids(is)).toEqual(ids(was))
      for (const { tag, id } of was.filter(({ tag }) => tag === NAMED_USER || tag === NAMED_GROUP)) {
        expect({ name, id, rights: effective(is, tag, id) }).toEqual({ name, id, rights: effective(was, tag, id) })
      }
    }
    await stage.unmount('a')
    expect(attributes(source)).toBe(xattrs)
    expect(modes(now())).toEqual(modes(before))
    expect(groups(now())).toEqual(groups(before))
  })

  it('keeps the default ACL of a directory', async () => {
    makeTree(stage.fs, source, ['dir d 0700 5'])
    const given = acl('u::rwx,u:1000:rwx,g::r--,m::r--,o::---')
    setAttributes(source, { d: { 'system.posix_acl_default': given } })
    const xattrs = attributes(source)
    await walk()
    expect(attributes(source)).toBe(xattrs)
    expect(modes(now()).d).toBe('2770')
    await stage.unmount('a')
    expect(attributes(source)).toBe(xattrs)
    expect(modes(now()).d).toBe('0700')
  })

  it('does not return bits that users removed since, and repeated mounts change nothing', async () => {
    makeTree(stage.fs, source, ['file a 0600', 'file b 0640', 'dir d 0700'])
    await walk({ restoreOnUnmount: 'false' })
    stage.fs.chmodSync(`${source}/a`, 0o600)
    const before = now()
    await walk({ restoreOnUnmount: 'false' })
    await stage.unmount('a')
    await walk({ restoreOnUnmount: 'false', fsGroupChangePolicy: 'Always' })
    expect(now()).toEqual(before)
  })
})

function ids(entries: readonly AclEntry[]): string[] {
  return entries.map(({ tag, id }) => `${tag}:${id}`)
}
