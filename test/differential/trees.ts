import fc, { type Arbitrary } from 'fast-check'

/** The group that is given; some inodes have it already. */
export const GROUP = 2000

export type Kind = 'dir' | 'file' | 'link' | 'fifo' | 'socket' | 'device'

/** An inode of a tree, below a directory that was listed before it: 0 is the tree's root. */
export interface Inode {
  kind: Kind
  parent: number
  name: Buffer
  mode: number
  uid: number
  gid: number
  /** Of a link. */
  target: string
  /** Of a file: more names, of which each lies in a directory of the tree (its number), or outside of the volume. */
  links: readonly (number | 'outside')[]
  acl: readonly Entry[] | undefined
  hasCapability: boolean
}

/** Named entries of an ACL; those every ACL has are made from the mode. */
export interface Entry {
  tag: 'user' | 'group'
  id: number
  bits: number
}

export type Tree = readonly Inode[]

const SLASH = 0x2f
const names = fc
  .oneof(
    fc.uint8Array({ min: 1, max: 255, minLength: 1, maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom('a b', '-rf', 'é', '\n', '...', 'x'.repeat(200)).map(Buffer.from),
  )
  .map((name) => Buffer.from(name.map((byte) => (byte === SLASH ? 0x5c : byte))))

const modes = fc.oneof(
  fc.constantFrom(0, 0o644, 0o755, 0o660, 0o2770, 0o4755, 0o2755, 0o6711, 0o1777, 0o2640, 0o440, 0o111),
  fc.nat({ max: 0o7777 }),
)

const entries = fc.uniqueArray(
  fc.record({
    tag: fc.constantFrom('user' as const, 'group' as const),
    id: fc.constantFrom(7, 1000, GROUP),
    bits: fc.nat({ max: 7 }),
  }),
  { minLength: 1, maxLength: 3, selector: ({ tag, id }) => `${tag} ${id}` },
)

const kinds: Arbitrary<Kind> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('file' as const) },
  { weight: 4, arbitrary: fc.constant('dir' as const) },
  { weight: 2, arbitrary: fc.constant('link' as const) },
  { weight: 2, arbitrary: fc.constantFrom('fifo' as const, 'socket' as const, 'device' as const) },
)

const inodes: Arbitrary<Inode> = fc.record({
  kind: kinds,
  parent: fc.nat({ max: 30 }),
  name: names,
  mode: modes,
  uid: fc.constantFrom(0, 1000, 65534),
  gid: fc.constantFrom(0, 5, GROUP, 65534),
  target: fc.constantFrom('nowhere', '.', '..', '../../../../../../etc/passwd', '/etc/passwd', '/', 'a b'),
  links: fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    fc.array(fc.oneof({ weight: 3, arbitrary: fc.nat({ max: 30 }) }, fc.constant('outside' as const)), {
      maxLength: 3,
    }),
  ),
  acl: fc.option(entries, { nil: undefined, freq: 6 }),
  hasCapability: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, fc.constant(true)),
})

/** Small trees: of many of them, those that matter turn up. */
export const trees: Arbitrary<Tree> = fc.array(inodes, { minLength: 1, maxLength: 12 }).map(sound)

/** Parents are directories that come before, names are theirs alone. */
function sound(list: readonly Inode[]): Tree {
  const directories = [0]
  return list.map((inode, index) => {
    const parent = directories[inode.parent % directories.length] ?? 0
    const links = inode.links.map((link) => (link === 'outside' ? link : (directories[link % directories.length] ?? 0)))
    if (inode.kind === 'dir') directories.push(index + 1)
    return { ...inode, parent, links, name: Buffer.concat([inode.name, Buffer.from(`~${index}`)]) }
  })
}
