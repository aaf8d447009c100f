import { afterEach, beforeEach, expect, it } from 'vitest'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { acl, attributes, setAttributes } from './attributes.ts'

const CAPABILITY_ATTRIBUTE = '0sAAAAAgAgAAAAAAAAAAAAAAAAAAA=' // cap_net_raw, permitted: struct vfs_cap_data revision 2
// Revision 3: the same, for the user namespace whose root is 1000.
const NAMESPACED = '0sAAAAAwAgAAAAAAAAAAAAAAAAAADoAwAA'
const ACCESS = acl('u::rw-,u:1000:rwx,g::r--,g:3000:rw-,m::rw-,o::---')
const DEFAULT = acl('u::rwx,u:1000:r-x,g::r-x,g:3000:rwx,m::rwx,o::r--')

const OWNERS: readonly (readonly [number, number])[] = [
  [0, 0],
  [0, 5],
  [1000, 5],
]
const MODES = ['4755', '2755', '6755', '4711', '2644', '6000', '1777', '0755']

onKernelStages('a walk and its restore', (open) => {
  let stage: Stage
  let source: string
  let names: string[]
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
  })
  afterEach(() => stage.close())

  const walk = (more: Record<string, string> = {}) =>
    stage.mount('a', {
      source,
      ownership: 'walk',
      'kubernetes.io/fsGroup': '2000',
      restoreOnUnmount: 'true',
      ...more,
    })

  /** The named fields of lstat(2) of each inode. */
  function facts(...what: ('mode' | 'uid' | 'gid' | 'atimeNs' | 'mtimeNs' | 'ctimeNs')[]): Record<string, string> {
    const listed: Record<string, string> = {}
    for (const name of names) {
      const stat = stage.fs.lstatSync(`${source}/${name}`, { bigint: true })
      listed[name] = what.map((field) => stat[field].toString(field === 'mode' ? 8 : 10)).join(' ')
    }
    return listed
  }

  /** Reading a directory moves its access time: after each listing by the test itself. */
  function setTimes(): void {
    for (const name of names) stage.fs.utimesSync(`${source}/${name}`, 1000.5, 2000.25)
  }

  function makeFiles(skip: (reason: string) => never): void {
    makeTree(stage.fs, source, ['dir plain 0755', 'dir sticky 1777', 'dir shared 2770 7', 'file plain/a 0640'])
    try {
      setAttributes(source, { plain: { 'user.note': '0x00' } })
    } catch {
      skip('tmpfs has user attributes since Linux 6.6')
    }
    const all: Record<string, Record<string, string>> = {
      shared: { 'system.posix_acl_access': ACCESS, 'system.posix_acl_default': DEFAULT, 'user.note': '0x6869' },
      sticky: { 'system.posix_acl_default': DEFAULT },
    }
    for (const [uid, gid] of OWNERS) {
      for (const mode of MODES) {
        for (const kind of ['bare', 'capable', 'namespaced', 'listed']) {
          const name = `${kind}-${uid}-${gid}-${mode}`
          stage.fs.writeFileSync(`${source}/${name}`, name)
          stage.fs.chownSync(`${source}/${name}`, uid, gid)
          stage.fs.chmodSync(`${source}/${name}`, Number.parseInt(mode, 8))
          if (kind === 'capable') all[name] = { 'security.capability': CAPABILITY_ATTRIBUTE, 'user.note': '0x01' }
          if (kind === 'namespaced') all[name] = { 'security.capability': NAMESPACED, 'trusted.note': '0x02' }
          if (kind === 'listed')
            all[name] = { 'system.posix_acl_access': ACCESS, 'security.capability': CAPABILITY_ATTRIBUTE }
        }
      }
    }
    setAttributes(source, all)
    names = ['.', ...stage.fs.readdirSync(source, { recursive: true, encoding: 'utf8' })]
  }

  it('keep set-uid and set-gid bits of files, capabilities, ACLs, other attributes, owners and times', async ({
    skip,
  }) => {
    makeFiles(skip)
    const xattrs = attributes(source)
    expect(xattrs.match(/security\.capability=/g)).toHaveLength(3 * MODES.length * OWNERS.length)
    expect(xattrs.match(/posix_acl_access=/g)).toHaveLength(MODES.length * OWNERS.length + 1)
    const before = facts('mode', 'uid', 'gid')
    const modes = facts('mode')
    setTimes()
    const kept = facts('uid', 'atimeNs', 'mtimeNs')

    await walk()
    expect(new Set(Object.values(facts('gid')))).toEqual(new Set(['2000']))
    expect(facts('uid', 'atimeNs', 'mtimeNs')).toEqual(kept)
    expect(facts('mode')).toEqual({ ...modes, '.': '42755', plain: '42755', sticky: '43777' })
    expect(attributes(source)).toBe(xattrs)

    setTimes()
    await stage.unmount('a')
    expect(facts('uid', 'atimeNs', 'mtimeNs')).toEqual(kept)
    expect(facts('mode', 'uid', 'gid')).toEqual(before)
    expect(attributes(source)).toBe(xattrs)
  })

  it('keep the ctime of inodes that need no change, with and without set-id bits', async ({ skip }) => {
    makeFiles(skip)
    const all = facts('mode')
    for (const [name, mode] of Object.entries(all)) {
      const bits = Number.parseInt(mode, 8)
      stage.fs.chownSync(`${source}/${name}`, 0, 2000)
      stage.fs.chmodSync(`${source}/${name}`, (bits & 0o7777) | ((bits & 0o170000) === 0o040000 ? 0o2000 : 0))
    }
    // The chown has taken the capabilities.
    setAttributes(source, { 'capable-0-5-0755': { 'security.capability': CAPABILITY_ATTRIBUTE } })
    stage.fs.chownSync(`${source}/plain/a`, 0, 5)
    const before = facts('ctimeNs', 'mode', 'gid')
    const xattrs = attributes(source)
    await walk({ fsGroupChangePolicy: 'Always' })
    const { 'plain/a': changed, ...rest } = facts('ctimeNs', 'mode', 'gid')
    const { 'plain/a': was, ...untouched } = before
    expect(rest).toEqual(untouched)
    expect(changed).not.toBe(was)
    await stage.unmount('a')
    const { 'plain/a': restored, ...after } = facts('ctimeNs', 'mode', 'gid')
    expect(after).toEqual(untouched)
    expect(restored).toMatch(/ 5$/)
    expect(attributes(source)).toBe(xattrs)
  })
})
