import { describe, expect, it } from 'vitest'
import { DIRECTORY_TYPE, REGULAR_FILE_TYPE, type Stat } from '../../../src/kernel/host.ts'
import {
  type InodeRecord,
  type InodeState,
  isFileContentAsRecorded,
  isSameBytes,
  NO_RECORDED_ACLS,
  resolveIntendedOwnership,
} from '../../../src/ownership/inode/record.ts'

const CAP = Uint8Array.of(1, 0, 0, 2, 0, 0x20, 0, 0)
const OTHER_CAP = Uint8Array.of(1, 0, 0, 2, 0, 0x04, 0, 0)

/** Group 5 to group 2000, nothing made before. */
function record(before: number, after: number, over: Partial<InodeRecord> = {}): InodeRecord {
  const first = { gid: 5, mode: before }
  return {
    inode: 1n,
    born: 2n,
    path: Buffer.from('a'),
    uid: 0,
    before: first,
    capability: undefined,
    acl: NO_RECORDED_ACLS,
    modified: 10n,
    size: 3n,
    after: { gid: 2000, mode: after },
    seen: first,
    intended: first,
    capabilityIntact: true,
    forfeited: false,
    settled: false,
    ...over,
  }
}

function found(
  gid: number,
  mode: number,
  capability: Uint8Array | undefined = undefined,
  over: Partial<Stat> = {},
): InodeState {
  return { stat: { gid, mode, uid: 0, modified: 10n, size: 3n, ...over } as Stat, capability, acl: undefined }
}

const FILE = record(0o640, 0o640)
const DIR = record(0o750, 0o2750)
const SUID = record(0o4755, 0o4755)
const BOTH = record(0o6711, 0o6711)
const CAPABLE = record(0o755, 0o755, { capability: CAP })
/** A third group: 5, then 2000, and 3000 on the way. */
const AGAIN = record(0o640, 0o640, {
  seen: { gid: 2000, mode: 0o600 },
  intended: { gid: 2000, mode: 0o600 },
  after: { gid: 3000, mode: 0o660 },
})

/** A second call after an interrupted one, which had changed the group and dropped the capability. */
const SECOND_CALL = record(0o755, 0o775, {
  capability: CAP,
  seen: { gid: 2000, mode: 0o755 },
  intended: { gid: 2000, mode: 0o755 },
  capabilityIntact: false,
})

/** With its privileges: an inode that gets its group without them is another case. */
const isAsLeft = (known: InodeRecord, now: InodeState) => {
  const state = resolveIntendedOwnership(known, now)
  return state !== undefined && !state.forfeit
}

const file = (gid: number, mode: number, ...rest: [(Uint8Array | undefined)?, Partial<Stat>?]) =>
  found(gid, REGULAR_FILE_TYPE | mode, ...rest)
const dir = (gid: number, mode: number, over: Partial<Stat> = {}) => found(gid, DIRECTORY_TYPE | mode, undefined, over)

const written = { modified: 11n }
const grown = { size: 4n }
const users = { uid: 1000 }

describe('the intended state of a recorded inode', () => {
  // With a record that is settled, and with one whose change may have been cut off.
  it.each<[string, InodeRecord, InodeState, boolean, boolean]>([
    ['unchanged', FILE, file(5, 0o640), true, true],
    ['changed as intended', FILE, file(2000, 0o640), true, true],
    ['unchanged and written to', FILE, file(5, 0o640, undefined, { ...written, ...grown }), true, true],
    ['changed as intended and written to', FILE, file(2000, 0o640, undefined, { ...written, ...grown }), true, true],
    ['changed as intended and then owned by a user', FILE, file(2000, 0o640, undefined, users), true, true],
    ['of another group', FILE, file(77, 0o640), false, false],
    ['of another mode', FILE, file(2000, 0o600), false, false],
    ['of another mode, before', FILE, file(5, 0o600), false, false],
    ['with set-uid that was set since', FILE, file(2000, 0o4640), false, false],
    ['with sticky that was set since', FILE, file(2000, 0o1640), false, false],

    ['a state in between, completely', AGAIN, file(2000, 0o600), false, true],
    ['the first state', AGAIN, file(5, 0o640), true, true],
    ['the last state', AGAIN, file(3000, 0o660), true, true],
    ['the group of one state with the mode of another', AGAIN, file(3000, 0o600), false, true],
    ['the group of the first with the mode of the last', AGAIN, file(5, 0o660), false, false],
    ['the group of one state, and no mode of any', AGAIN, file(3000, 0o604), false, false],
    ['no group of any, and a mode of one', AGAIN, file(4000, 0o600), false, false],

    ['an unchanged directory', DIR, dir(5, 0o750), true, true],
    ['a directory changed as intended', DIR, dir(2000, 0o2750), true, true],
    ['a directory after chown, before chmod', DIR, dir(2000, 0o750), false, true],
    [
      'a directory after chown, before chmod, with later changes inside',
      DIR,
      dir(2000, 0o750, { ...written, ...grown }),
      false,
      true,
    ],
    ['a directory with the intended mode and the first group', DIR, dir(5, 0o2750), false, false],
    ['a directory with removed permissions', DIR, dir(2000, 0o2700), false, false],
    ['a directory with added permissions', DIR, dir(2000, 0o2770), false, false],

    ['an unchanged set-uid file', SUID, file(5, 0o4755), true, true],
    ['a set-uid file changed as intended', SUID, file(2000, 0o4755), true, true],
    ['a set-uid file after chown, before chmod', SUID, file(2000, 0o755), false, true],
    ['the same with another mtime', SUID, file(2000, 0o755, undefined, written), false, false],
    ['the same with another size', SUID, file(2000, 0o755, undefined, grown), false, false],
    [
      'the same of a user, who may set set-uid',
      { ...SUID, uid: 1000 },
      file(2000, 0o755, undefined, users),
      false,
      true,
    ],
    ['the same, owned by a user since', SUID, file(2000, 0o755, undefined, users), false, false],
    [
      "a user's file with set-gid, which the user may not set",
      { ...BOTH, uid: 1000 },
      file(2000, 0o711, undefined, users),
      false,
      false,
    ],
    ['a set-uid file before the chown, with set-uid removed by its user', SUID, file(5, 0o755), false, false],
    ['a set-uid file that a restore had changed to another group', SUID, file(5, 0o755), false, false],
    ['a set-uid file without set-uid after a write', SUID, file(5, 0o755, undefined, written), false, false],
    ['a set-uid file without other bits as well', SUID, file(2000, 0o744), false, false],
    ['a set-uid file with set-gid instead', SUID, file(2000, 0o2755), false, false],
    ['both set-ids after chown, before chmod', BOTH, file(2000, 0o711), false, true],
    ['both set-ids after a write', BOTH, file(2000, 0o711, undefined, written), false, false],

    ['with its capability, unchanged', CAPABLE, file(5, 0o755, CAP), true, true],
    ['with its capability, changed as intended', CAPABLE, file(2000, 0o755, Uint8Array.from(CAP)), true, true],
    ["with its capability, on a user's file that was written to", CAPABLE, file(2000, 0o755, CAP, written), true, true],
    ['without its capability after chown', CAPABLE, file(2000, 0o755), false, true],
    [
      'without its capability after chown, and after the chmod of a second call',
      SECOND_CALL,
      file(2000, 0o775),
      false,
      true,
    ],
    ['without its capability after the chown of a restore', CAPABLE, file(5, 0o755), false, false],
    ['without its capability, with another mtime', CAPABLE, file(2000, 0o755, undefined, written), false, false],
    ['without its capability, with another size', CAPABLE, file(2000, 0o755, undefined, grown), false, false],
    [
      'without its capability, with an owner other than root',
      CAPABLE,
      file(2000, 0o755, undefined, users),
      false,
      false,
    ],
    ['without its capability, with another mode', CAPABLE, file(2000, 0o700), false, false],
    ['without its capability, with another group', CAPABLE, file(77, 0o755), false, false],
    ['with another capability and written to', CAPABLE, file(2000, 0o755, OTHER_CAP, written), false, false],
    ["with another capability on a user's file", CAPABLE, file(2000, 0o755, OTHER_CAP, users), false, false],
    ['with a capability that was added since, and written to', FILE, file(2000, 0o640, CAP, written), false, false],
  ])(
    'the state before an interrupted call is resolved for an inode: %s (%#)',
    (_what, known, now, settled, unsettled) => {
      expect({
        settled: isAsLeft({ ...known, settled: true }, now),
        unsettled: isAsLeft({ ...known, settled: false }, now),
      }).toEqual({ settled, unsettled })
    },
  )

  // A chown that was cut off takes a capability away; it never puts one there.
  it.each<[string, InodeRecord, InodeState]>([
    ['with another capability', CAPABLE, file(2000, 0o755, OTHER_CAP)],
    ['with another capability before the chown', CAPABLE, file(5, 0o755, OTHER_CAP)],
    ['with a capability that it did not have', FILE, file(2000, 0o640, CAP)],
  ])('an inode counts as changed by a user, whether its record is settled or not: %s', (_what, known, now) => {
    expect(isAsLeft({ ...known, settled: true }, now)).toBe(false)
    expect(isAsLeft({ ...known, settled: false }, now)).toBe(false)
  })

  // A call died after its chown; the next one records the state that was meant, not the stripped one.
  it("a set-uid bit that a write dropped again after an interrupted call is a user's change", () => {
    const known = { ...SUID, seen: { gid: 2000, mode: 0o755 }, meant: { gid: 2000, mode: 0o4755 } }
    expect(isAsLeft({ ...known, settled: true }, file(2000, 0o755, undefined, written))).toBe(false)
    expect(isAsLeft(known, file(2000, 0o755, undefined, written))).toBe(false)
    expect(isAsLeft(known, file(2000, 0o755))).toBe(true)
  })

  // Linux leaves set-gid without group-execute (mandatory locking once) to a chown by root: 6644 becomes 2644.
  it('a chown may drop set-uid alone if set-gid came without group-execute', () => {
    const known = record(0o6644, 0o6644)
    expect(isAsLeft({ ...known, settled: true }, file(2000, 0o2644))).toBe(false)
    expect(isAsLeft(known, file(2000, 0o2644))).toBe(true)
    expect(isAsLeft(known, file(2000, 0o2644, undefined, written))).toBe(false)
  })
})

describe('the content of a recorded inode', () => {
  it.each<[string, InodeRecord, Partial<Stat>, boolean]>([
    ['same mtime and size', FILE, {}, true],
    ["same mtime and size of a user's file", { ...FILE, uid: 1000 }, { uid: 1000 }, true],
    ['same mtime and size, with another owner since', FILE, { uid: 1000 }, false],
    ['mtime later', FILE, { modified: 11n }, false],
    ['mtime earlier', FILE, { modified: 9n }, false],
    ['longer', FILE, { size: 4n }, false],
    ['shorter', FILE, { size: 0n }, false],
    ['with a capability, owner root', CAPABLE, {}, true],
    ['with a capability, owner root, mtime moved', CAPABLE, { modified: 11n }, false],
    ['with a capability, owner not root', CAPABLE, { uid: 1000 }, false],
    ['with a capability, owner not root, mtime moved', CAPABLE, { uid: 1000, modified: 11n }, false],
  ])('the content of a file is or is not the recorded content: %s (%#)', (_what, known, over, is) => {
    expect(isFileContentAsRecorded(known, file(2000, 0o755, undefined, over).stat)).toBe(is)
  })
})

it.each<[string, Uint8Array | undefined, Uint8Array | undefined, boolean]>([
  ['none and none', undefined, undefined, true],
  ['none and some', undefined, CAP, false],
  ['some and none', CAP, undefined, false],
  ['none and empty', undefined, new Uint8Array(), false],
  ['equal', CAP, Buffer.from(CAP), true],
  ['another byte', CAP, OTHER_CAP, false],
  ['longer', CAP, Uint8Array.of(...CAP, 0), false],
])('isSameBytes, %s: %#', (_what, a, b, are) => {
  expect(isSameBytes(a, b)).toBe(are)
})

describe('an ACL', () => {
  const [before, after, other] = [Uint8Array.of(2, 1), Uint8Array.of(2, 2), Uint8Array.of(2, 3)]
  const given = record(0o640, 0o660, { acl: { before, seen: before, after } })
  const withAcl = (acl: Uint8Array | undefined, gid: number, mode: number) => ({ ...found(gid, mode), acl })

  it('the ACL of an interrupted call is recognized, with the permission bits that it set', () => {
    expect(resolveIntendedOwnership(given, withAcl(after, 5, 0o660))).toEqual({ gid: 5, mode: 0o660 })
    expect(resolveIntendedOwnership({ ...given, settled: true }, withAcl(after, 5, 0o660))).toBeUndefined()
  })

  it.each([
    ['the ACL as it was recorded', before, 5, 0o640],
    ['the ACL as the walk left it', after, 2000, 0o660],
  ] as const)("a recorded state of the ACL does not count as a user's change: %s", (_what, acl, gid, mode) => {
    expect(resolveIntendedOwnership({ ...given, settled: true }, withAcl(acl, gid, mode))).toEqual({ gid, mode })
  })

  it.each([
    ['another', other, 5, 0o640],
    ['removed', undefined, 5, 0o640],
    ['the one that was set, with other permission bits', after, 5, 0o600],
  ] as const)("an ACL counts as a user's change if it is %s", (_what, acl, gid, mode) => {
    expect(resolveIntendedOwnership(given, withAcl(acl, gid, mode))).toBeUndefined()
  })
})
