import { beforeEach, describe, expect, it } from 'vitest'
import { type Inodes, SystemError } from '../../../src/kernel/host.ts'
import {
  ACCESS_ACL_ATTRIBUTE,
  CAPABILITY_ATTRIBUTE,
  inspectInode,
  type OpenInode,
} from '../../../src/ownership/inode/attributes.ts'
import { extractOwnership } from '../../../src/ownership/inode/policy.ts'
import { createInodeRecord, type InodeRecord } from '../../../src/ownership/inode/record.ts'
import { applyInodeChange, isInodeChangeNeeded } from '../../../src/ownership/walk/change.ts'
import { createWalkReport, type WalkReport } from '../../../src/ownership/walk/report.ts'
import { makeTree } from '../../helpers/tree.ts'
import { MemoryVolume } from '../volume.ts'

const FILE = Buffer.from('a')
const CAP = Uint8Array.of(1, 0, 0, 2)
const [ACL, WIDER] = [Uint8Array.of(2, 0, 0, 0), Uint8Array.of(2, 0, 0, 0, 1)]

let volume: MemoryVolume
let inodes: Inodes
let report: WalkReport
beforeEach(() => {
  volume = new MemoryVolume()
  inodes = volume.host.inodes
  report = createWalkReport()
})

interface Order {
  mode?: string
  group?: number
  /** Of the file, in octal; undefined: as it is. */
  wanted?: number
  capability?: Uint8Array
  acl?: [now: Uint8Array, wanted: Uint8Array]
}

/** A file that was inspected and recorded, and is to be changed to group 2000. */
function arrange({ mode = '0640', group = 0, wanted, capability, acl }: Order = {}): {
  inode: OpenInode
  record: InodeRecord
} {
  makeTree(volume.fs, volume.directory, [`file a ${mode} ${group}`])
  const top = inodes.openLinkFree(volume.directory)
  const handle = inodes.openEntry(top, FILE)
  if (capability) inodes.setAttribute(handle, CAPABILITY_ATTRIBUTE, capability)
  if (acl) inodes.setAttribute(handle, ACCESS_ACL_ATTRIBUTE, acl[0])
  const inode = inspectInode(inodes, handle, inodes.stat(handle), Date.now(), inodes.attributeNames(handle, top, FILE))
  const now = extractOwnership(inode.stat)
  const after = { gid: 2000, mode: wanted ?? now.mode }
  volume.world.actions.length = 0
  return { inode, record: createInodeRecord(undefined, inode, FILE, now, after, acl?.[1] ?? inode.acl) }
}

const calls = () => volume.world.actions.map((action) => action.replace('/volume/a ', '').replace('/volume/a', ''))
const path = () => `${volume.directory}/a`
const now = () => {
  const { gid, mode } = volume.fs.statSync(path())
  return { gid, mode: (mode & 0o7777).toString(8) }
}

/** Runs `work` right after a call of the change. */
function after(call: 'chown' | 'chmod', work: () => void): void {
  const made = inodes[call]
  inodes[call] = (handle, value) => {
    made(handle, value)
    inodes[call] = made
    work()
  }
}

function write(): void {
  volume.fs.writeFileSync(path(), 'other content')
}

describe('a change', () => {
  it('a change of an inode restores the bits that chown drops after the chown, and the capability last', () => {
    const item = arrange({ mode: '4750', wanted: 0o4770, capability: CAP, acl: [ACL, WIDER] })
    const { setAttribute } = inodes
    inodes.setAttribute = (handle, name, value) => {
      setAttribute(handle, name, value)
      if (name !== ACCESS_ACL_ATTRIBUTE) return
      // An ACL brings the permission bits with it, and moves no mtime.
      const { mtime } = volume.fs.statSync(path())
      volume.fs.chmodSync(path(), 0o770)
      volume.fs.utimesSync(path(), mtime, mtime)
    }
    expect(applyInodeChange(inodes, item, report)).toBe('made')
    expect(calls()).toEqual([
      'chown 2000',
      `setxattr ${ACCESS_ACL_ATTRIBUTE}`,
      'chmod 4770',
      `setxattr ${CAPABILITY_ATTRIBUTE}`,
    ])
    expect(now()).toEqual({ gid: 2000, mode: '4770' })
    expect(report).toMatchObject({ changed: 1, left: {} })
  })

  it('a change of an inode that is already right makes no call, because even a chown to the same group drops privileges', () => {
    const item = arrange({ mode: '4750' })
    inodes.chown(item.inode.handle, 2000)
    inodes.chmod(item.inode.handle, 0o4750)
    volume.world.actions.length = 0
    expect(applyInodeChange(inodes, item, report)).toBe('made')
    expect([calls(), report.changed, report.alreadyRight]).toEqual([[], 0, 1])
  })

  it('a change calls no chown if the group is right', () => {
    const item = arrange({ group: 2000, wanted: 0o660 })
    expect(applyInodeChange(inodes, item, report)).toBe('made')
    expect(calls()).toEqual(['chmod 660'])
  })

  it('a change calls no chmod if only the group differs', () => {
    expect(applyInodeChange(inodes, arrange(), report)).toBe('made')
    expect(calls()).toEqual(['chown 2000'])
  })

  it.each<[string, string, () => void]>([
    ['group', 'overtaken', () => volume.fs.chownSync(path(), 0, 4000)],
    // The group shows that no walk was here, so there is nothing to remember.
    ['mode', 'untouched', () => volume.fs.chmodSync(path(), 0o600)],
  ])('a change of an inode whose %s differs from its record is %s', (_what, outcome, change) => {
    const item = arrange()
    change()
    const before = now()
    expect(applyInodeChange(inodes, item, report)).toBe(outcome)
    expect(now()).toEqual(before)
    expect(report.left).toEqual({ 'changed during the walk': { count: 1, examples: ['a'] } })
  })

  it('a file that was written to before its change gets no privileges, and is skipped', () => {
    const item = arrange({ mode: '4750' })
    write()
    expect(applyInodeChange(inodes, item, report)).toBe('untouched')
    expect([calls(), now()]).toEqual([[], { gid: 0, mode: '4750' }])
  })

  it.each(['chown', 'chmod'] as const)('a file that was written to after its %s loses its privileges', (call) => {
    const item = arrange({ mode: '4750', capability: CAP })
    after(call, write)
    expect(applyInodeChange(inodes, item, report)).toBe('made')
    expect(now()).toEqual({ gid: 2000, mode: '750' })
    expect(inodes.getAttribute(item.inode.handle, CAPABILITY_ATTRIBUTE)).toBeUndefined()
    // What a write has changed before is not given them for a moment either.
    if (call === 'chown') expect(calls()).toEqual(['chown 2000'])
  })

  it('an inode that got an ACL after its inspection is not changed', () => {
    const item = arrange({ wanted: 0o660 })
    inodes.setAttribute(item.inode.handle, ACCESS_ACL_ATTRIBUTE, ACL)
    volume.world.actions.length = 0
    expect(applyInodeChange(inodes, item, report)).toBe('untouched')
    expect(calls()).toEqual([])
  })
})

describe('a change that the kernel refuses', () => {
  const refuse = (call: 'chown' | 'chmod', code: string) => {
    inodes[call] = () => {
      throw new SystemError(call, code, 'a')
    }
  }

  it.each([
    ['EPERM', 'immutable or append-only'],
    ['EROFS', 'read-only'],
    ['EDQUOT', 'over quota'],
  ])('a refusal that concerns the inode (%s) is reported, and the walk continues', (code, reason) => {
    const item = arrange()
    refuse('chown', code)
    expect(applyInodeChange(inodes, item, report)).toBe('untouched')
    expect(report).toMatchObject({ changed: 0, left: { [reason]: { count: 1, examples: ['a'] } } })
  })

  it('a refused change stays recorded if an earlier walk has changed the inode', () => {
    const item = arrange()
    refuse('chown', 'EPERM')
    const record = { ...item.record, before: { gid: 9, mode: 0o640 } }
    expect(applyInodeChange(inodes, { ...item, record }, report)).toBe('refused')
  })

  it('a refusal for any other reason ends the walk', () => {
    const item = arrange()
    refuse('chown', 'EIO')
    expect(() => applyInodeChange(inodes, item, report)).toThrow('EIO')
  })

  it('a half-applied change ends the walk, and the next call must complete it', () => {
    const item = arrange({ wanted: 0o660 })
    refuse('chmod', 'EPERM')
    expect(() => applyInodeChange(inodes, item, report)).toThrow('EPERM')
    expect(now()).toEqual({ gid: 2000, mode: '640' })
  })

  it('a walk ends at an inode with an interrupted change if the kernel refuses the change or a user has changed the inode', () => {
    const item = arrange({ mode: '0640' })
    const half = { ...item, record: { ...item.record, intended: { gid: 0, mode: 0o4640 } } }
    volume.fs.chownSync(path(), 0, 4000)
    expect(() => applyInodeChange(inodes, half, report)).toThrow('the next call goes on')
  })
})

it.each<[string, Partial<InodeRecord>, boolean]>([
  ['the group differs', {}, true],
  ['nothing differs', { after: { gid: 0, mode: 0o640 } }, false],
  [
    'the ACL differs',
    { after: { gid: 0, mode: 0o640 }, acl: { before: undefined, seen: undefined, after: ACL } },
    true,
  ],
  ['the capability was removed', { after: { gid: 0, mode: 0o640 }, capability: CAP }, true],
  ['the capability is forfeited', { after: { gid: 0, mode: 0o640 }, capability: CAP, forfeited: true }, false],
])('isInodeChangeNeeded if %s: %s', (_what, over, needed) => {
  const { inode, record } = arrange()
  expect(isInodeChangeNeeded(inode, { ...record, ...over })).toBe(needed)
})
