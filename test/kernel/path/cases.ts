/**
 * What it is, the source's content as specs of makeTree, the subPath, and where what is found lies ('' is the source
 * itself) or how the refusal reads. `@` stands for the source's path. Beside the source are `../sibling`, and
 * `../../outside` with a directory `d` and a file `secret`.
 */
export type Case = readonly [name: string, tree: string, subPath: string, outcome: string | RegExp]

const chain = (links: number) =>
  Array.from({ length: links }, (_, n) => `link l${n} ${n === 0 ? 'd' : `l${n - 1}`}`).join(', ')
const DEEP = Array.from({ length: 300 }, (_, n) => `n${n % 10}`).join('/')
const LONG = 'n'.repeat(255)
const WRITTEN =
  'file ..1/conf/key 0644, file ..1/plain 0644, link ..data ..1, link conf ..data/conf, link plain ..data/plain'

const THERE: readonly Case[] = [
  ['a directory', 'dir a/b 0755', 'a/b', 'a/b'],
  ['a directory with set-gid', 'dir a/b 2755', 'a/b', 'a/b'],
  ['a directory with set-uid', 'dir a/b 4755', 'a/b', 'a/b'],
  ['a directory with the sticky bit', 'dir a/b 1777', 'a/b', 'a/b'],
  ['a file', 'file a/f 0600', 'a/f', 'a/f'],
  ['a file at the top', 'file f 0000', 'f', 'f'],
  ['names that begin with dots', 'dir .../..a 0755', '.../..a', '.../..a'],
  ['a path of 300 directories', `dir ${DEEP} 0755`, DEEP, DEEP],
  ['a name of 255 bytes', `file ${LONG} 0600`, LONG, LONG],
]

const LINKS: readonly Case[] = [
  ['a link to a directory', 'dir d 0755, link l d', 'l', 'd'],
  ['a directory below a link', 'dir d/e 0755, link l d', 'l/e', 'd/e'],
  ['a link to a file', 'file d/f 0600, link l d/f', 'l', 'd/f'],
  ['links behind links', 'dir d/e 0755, link d/m e, link l d', 'l/m', 'd/e'],
  ['a link up and down again', 'dir exists 0755, link d/l ../exists', 'd/l', 'exists'],
  ['a link up from where a link led', 'dir a/b 0755, link a/b/up ../c, file a/c 0600, link l a/b', 'l/up', 'a/c'],
  ['a link to the source itself', 'link d/l ..', 'd/l', ''],
  ['a link to its own directory', 'file f 0600, link l .', 'l/l/l/f', 'f'],
  ['a link with slashes and dots to spare', 'dir d/e 0755, link l .//d/./e//', 'l', 'd/e'],
  ['an absolute link into the source', 'dir d/e 0755, link l @/d', 'l/e', 'd/e'],
  ['an absolute link to the source', 'file f 0600, link a/b/l @', 'a/b/l/f', 'f'],
  ['an absolute link with slashes and dots to spare', 'dir d 0755, link l /.@//./d/', 'l', 'd'],
  ['an absolute link up and down inside', 'dir d 0755, file f 0600, link l @/d/../f', 'l', 'f'],
  ['40 links', `dir d 0755, ${chain(40)}`, 'l39', 'd'],
  ['a file of an atomic writer', WRITTEN, 'plain', '..1/plain'],
  ['a directory of an atomic writer', WRITTEN, 'conf', '..1/conf'],
  ['a file in a directory of an atomic writer', WRITTEN, 'conf/key', '..1/conf/key'],
  [
    'a part of a checkout behind a link',
    'file .trees/abc/web/index 0644, link current .trees/abc',
    'current/web',
    '.trees/abc/web',
  ],
]

const MISSING: readonly Case[] = [
  ['nothing', '', 'a', /^subPath "a" is not in the source: "a" does not exist; create it there/],
  ['nothing below a directory', 'dir a 0755', 'a/b/c/d', /: "a\/b" does not exist; /],
  [
    'a dangling link',
    'link a/l nowhere',
    'a/l',
    /: "a\/nowhere" does not exist, where the link "a\/l" -> "nowhere" leads; /,
  ],
  ['a dangling link in the middle', 'link a/l nowhere', 'a/l/c', /: "a\/nowhere" does not exist, where the link/],
  ['a dangling absolute link inside', 'link l @/nowhere/x', 'l', /: "nowhere" does not exist, where the link "l"/],
  [
    'an atomic writer whose directory is gone',
    'link ..data ..1, link key ..data/key',
    'key',
    /"\.\.1" does not exist, where/,
  ],
  ['a link up from nothing', 'dir d 0755, link l no/../d', 'l', /: "no" does not exist/],
  ['a link to a name that is too long', `link l ${LONG}n`, 'l', /does not exist, where the link "l"/],
  [
    'something below a file',
    'file f 0600',
    'f/x',
    /^subPath "f\/x" is not in the source: "f" is a file, not a directory; correct/,
  ],
  [
    'a link up from a file',
    'file f 0600, dir d 0755, link l f/../d',
    'l',
    /"f" is a file, not a directory, where the link "l"/,
  ],
  ['a link to a file with a slash', 'file f 0600, link l f/', 'l', /"f" is a file, not a directory/],
  ['a link to a file with a dot', 'file f 0600, link l f/.', 'l', /"f" is a file, not a directory/],
  [
    'something below a link to a file',
    'file f 0600, link l f',
    'l/x',
    /"f" is a file, not a directory, where the link "l" -> "f" leads/,
  ],
]

const ESCAPES: readonly Case[] = [
  [
    'a link out',
    'link l ../../outside',
    'l',
    /^subPath "l" leads out of the source through the link "l" -> "\.\.\/\.\.\/outside": /,
  ],
  ['something below a link out', 'link l ../../outside', 'l/d', /out of the source through the link "l" -> /],
  ['a link out to a file', 'link l ../../outside/secret', 'l', /leads out of the source/],
  [
    'a link out to nothing',
    'link a/l ../../../nowhere',
    'a/l',
    /through the link "a\/l" -> "\.\.\/\.\.\/\.\.\/nowhere"/,
  ],
  ['a link out and in again', 'dir d 0755, link l ../data/d', 'l', /leads out of the source/],
  ['an absolute link out', 'link a/l /etc', 'a/l', /through the link "a\/l" -> "\/etc"/],
  ['an absolute link to the root directory', 'link l /', 'l', /through the link "l" -> "\/"/],
  ['an absolute link to the directory above', 'link l @/..', 'l', /leads out of the source/],
  ['an absolute link out by way of the source', 'link l @/../../outside/d', 'l', /leads out of the source/],
  ['an absolute link to a longer name beside', 'link l @-other/d', 'l', /leads out of the source/],
  ['an absolute link in by a detour', 'dir d 0755, link l /tmp/..@/d', 'l', /leads out of the source/],
  ['a link to a link out', 'link l m, link m ../sibling', 'l', /through the link "m" -> /],
  ['a link out in the middle', 'link a/l ../../sibling', 'a/l/d', /through the link "a\/l"/],
  ['a link one step too far up', 'link a/b/c/l ../../../../x', 'a/b/c/l', /leads out of the source/],
  [
    'a link up from where an absolute link led',
    'link a/b/up ../../.., link l @/a/b',
    'l/up',
    /through the link "a\/b\/up"/,
  ],
  ['a link up to nothing', 'link a/l ../../nowhere/d', 'a/l', /leads out of the source/],
]

const CIRCLES: readonly Case[] = [
  ['a link to itself', 'link l l', 'l', /^subPath "l" goes through more than 40 links, .* "l" -> "l"/],
  ['two links in a circle', 'link a b, link b a', 'a/x', /more than 40 links/],
  ['an absolute link to itself', 'link l @/l', 'l', /more than 40 links/],
  ['a circle that grows', 'link l l/l', 'l', /more than 40 links/],
  ['41 links', `dir d 0755, ${chain(41)}`, 'l40', /more than 40 links/],
]

const TEXTS: readonly Case[] = [
  ['two dots', 'dir d 0755', '..', /^option "subPath" is "\.\."/],
  ['two dots that stay inside', 'dir d 0755', 'd/../d', /^option "subPath" is/],
  ['two dots that lead out', 'dir d 0755', 'd/../../outside', /^option "subPath" is/],
  ['an absolute path', 'dir etc 0755', '/etc', /^option "subPath" is/],
  ['a trailing slash', 'dir d 0755', 'd/', /^option "subPath" is/],
]

export const CASES: readonly Case[] = [...THERE, ...LINKS, ...MISSING, ...ESCAPES, ...CIRCLES, ...TEXTS]
