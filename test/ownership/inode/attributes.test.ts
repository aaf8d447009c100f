import { expect, it } from 'vitest'
import { grantAclBits } from '../../../src/ownership/inode/attributes.ts'

const TAGS = { owner: 0x01, user: 0x02, group: 0x04, named: 0x08, mask: 0x10, other: 0x20 }
type Entry = [tag: keyof typeof TAGS, bits: number, id?: number]

/** struct posix_acl_xattr_header and its entries (include/uapi/linux/posix_acl_xattr.h). */
function acl(...entries: Entry[]): Buffer {
  const bytes = Buffer.alloc(4 + entries.length * 8)
  bytes.writeUInt32LE(2)
  for (const [index, [tag, bits, id = 0xffffffff]] of entries.entries()) {
    bytes.writeUInt16LE(TAGS[tag], 4 + index * 8)
    bytes.writeUInt16LE(bits, 6 + index * 8)
    bytes.writeUInt32LE(id, 8 + index * 8)
  }
  return bytes
}

it.each<[string, number, Entry[], Entry[]]>([
  [
    'the owner, the owning group and the mask gain the bits',
    0o6,
    [
      ['owner', 0o4],
      ['group', 0o0],
      ['mask', 0o0],
      ['other', 0o0],
    ],
    [
      ['owner', 0o6],
      ['group', 0o6],
      ['mask', 0o6],
      ['other', 0o0],
    ],
  ],
  [
    'named entries keep the rights that the old mask permitted, and no more',
    0o6,
    [
      ['owner', 0o6],
      ['user', 0o7, 1000],
      ['group', 0o4],
      ['named', 0o6, 50],
      ['mask', 0o4],
      ['other', 0o4],
    ],
    [
      ['owner', 0o6],
      ['user', 0o4, 1000],
      ['group', 0o6],
      ['named', 0o4, 50],
      ['mask', 0o6],
      ['other', 0o4],
    ],
  ],
  [
    'rights that the mask withheld from the owning group are not added with the bits',
    0o6,
    [
      ['owner', 0o7],
      ['group', 0o7],
      ['mask', 0o4],
      ['other', 0o0],
    ],
    [
      ['owner', 0o7],
      ['group', 0o6],
      ['mask', 0o6],
      ['other', 0o0],
    ],
  ],
  [
    'a directory gains the permission to enter it',
    0o7,
    [
      ['owner', 0o7],
      ['user', 0o5, 1000],
      ['group', 0o5],
      ['mask', 0o5],
      ['other', 0o5],
    ],
    [
      ['owner', 0o7],
      ['user', 0o5, 1000],
      ['group', 0o7],
      ['mask', 0o7],
      ['other', 0o5],
    ],
  ],
])('an access ACL to which mode bits are granted: %s', (_what, bits, before, after) => {
  const given = acl(...before)
  expect(grantAclBits(given, bits)).toEqual(acl(...after))
  expect(given).toEqual(acl(...before))
})

it('an ACL without a mask is returned unchanged', () => {
  const plain = acl(['owner', 0o6], ['group', 0o4], ['other', 0o0])
  expect(grantAclBits(plain, 0o6)).toBe(plain)
})
