import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { makeSocket } from '../../real-mounts/socket.ts'

/** As a Case, for what memfs has no notion of: the source is filled by a function. Mounts are undone by the test. */
export type KernelCase = readonly [
  name: string,
  fill: (source: string) => void | Promise<void>,
  subPath: string,
  outcome: string | RegExp,
]

const OPEN_TO_ALL = 0o1777

export const KERNEL_CASES: readonly KernelCase[] = [
  ['a directory without search permission', (s) => void fs.mkdirSync(`${s}/a`, 0o000), 'a', 'a'],
  ['a socket', (s) => makeSocket(`${s}/socket`), 'socket', 'socket'],
  ['a FIFO', (s) => fifo(`${s}/fifo`), 'fifo', 'fifo'],
  ['a link to a FIFO', (s) => all(fifo(`${s}/fifo`), link(s, 'l', 'fifo')), 'l', 'fifo'],
  ['something below a socket', (s) => makeSocket(`${s}/socket`), 'socket/x', /"socket" is a socket, not a directory/],
  ['something below a FIFO', (s) => fifo(`${s}/fifo`), 'fifo/x/y', /"fifo" is a FIFO, not a directory/],
  [
    'a character device',
    (s) => node(`${s}/null`, 'c', '1', '3'),
    'null',
    /^subPath "null" is a character device: name a directory, a file, a socket or a FIFO$/,
  ],
  [
    'a link to a block device',
    (s) => all(node(`${s}/disk`, 'b', '7', '0'), link(s, 'l', 'disk')),
    'l',
    /^subPath "l" is a block device: /,
  ],

  ['a mount of another device', (s) => other(`${s}/m`), 'm', 'm'],
  ['a directory below a mount', (s) => all(other(`${s}/m`), make(`${s}/m/d`)), 'm/d', 'm/d'],
  ['a directory below mounts on mounts', (s) => all(other(`${s}/m`), other(`${s}/m`), make(`${s}/m/d`)), 'm/d', 'm/d'],
  ['a bind mount of what lies outside', (s) => all(make(`${s}/m`), bind(`${s}/../../outside`, `${s}/m`)), 'm/d', 'm/d'],
  ['a bind mount on a file', (s) => all(file(`${s}/m`), bind(`${s}/../../outside/secret`, `${s}/m`)), 'm', 'm'],
  [
    'a link from a mount into the source',
    (s) => all(other(`${s}/m`), make(`${s}/d`), link(s, 'm/l', '../d')),
    'm/l',
    'd',
  ],
  [
    'an absolute link from a mount',
    (s) => all(other(`${s}/a/m`), file(`${s}/f`), link(s, 'a/m/l', `${s}/f`)),
    'a/m/l',
    'f',
  ],
  [
    'a link out from a mount',
    (s) => all(other(`${s}/m`), link(s, 'm/l', '../..')),
    'm/l',
    /through the link "m\/l" -> "\.\.\/\.\."/,
  ],
  [
    'a link out from a bind mount, to where it was bound from',
    (s) => all(make(`${s}/m`), link(`${s}/../../outside/d`, 'l', '../secret'), bind(`${s}/../../outside/d`, `${s}/m`)),
    'm/l',
    /"secret" does not exist, where the link "m\/l"/,
  ],

  ['a link whose target is not UTF-8', (s) => odd(s), 'l', 'd'],
  [
    'a dangling link whose target is not UTF-8',
    (s) => link(s, 'l', Buffer.from('\xff\n', 'latin1')),
    'l',
    /"\ufffd\\n" does not exist, where the link "l" -> "\ufffd\\n" leads/,
  ],

  [
    'a link in /proc to the root directory',
    proc,
    'proc/1/root/etc',
    /^subPath ".*" meets the link "proc\/1\/root" where/,
  ],
  ['a link in /proc to where a file is open', proc, 'proc/1/exe', /meets the link "proc\/1\/exe" where links are not/],
  ['a link on a mount with nosymfollow', noSymFollow, 'm/l', /meets the link "m\/l" where links are not followed/],
  [
    "an absolute link to a link in a stranger's name",
    stranger,
    'l',
    /meets the link "open\/l", which user 1000 has made/,
  ],
  [
    "a link of a stranger's in his own directory",
    (s) => all(stranger(s), fs.lchownSync(`${s}/open`, 1000, 0)),
    'l',
    'd',
  ],
]

/** For several effects in one expression. */
function all(..._effects: unknown[]): void {}

function link(source: string, path: string, target: string | Buffer): void {
  fs.symlinkSync(target, `${source}/${path}`)
}

function file(path: string): void {
  fs.writeFileSync(path, '')
}

function make(path: string): void {
  fs.mkdirSync(path, { recursive: true })
}

function fifo(path: string): void {
  execFileSync('mkfifo', [path])
}

function node(path: string, ...args: string[]): void {
  execFileSync('mknod', [path, ...args])
}

function bind(from: string, to: string): void {
  execFileSync('mount', ['--bind', from, to])
}

function other(path: string): void {
  make(path)
  execFileSync('mount', ['-t', 'tmpfs', 'other', path])
}

function proc(source: string): void {
  make(`${source}/proc`)
  execFileSync('mount', ['-t', 'proc', 'proc', `${source}/proc`])
}

/** Its last name can be said in UTF-8, so that a case can. */
function odd(source: string): void {
  const name = Buffer.from('\xff\xfe', 'latin1')
  fs.mkdirSync(Buffer.concat([Buffer.from(`${source}/`), name]))
  link(source, 'k', Buffer.concat([name, Buffer.from('/..//'), name, Buffer.from('/../d')]))
  make(`${source}/d`)
  link(source, 'l', 'k')
}

function noSymFollow(source: string): void {
  other(`${source}/m`)
  make(`${source}/m/d`)
  link(source, 'm/l', 'd')
  execFileSync('mount', ['-o', 'remount,bind,nosymfollow', `${source}/m`])
}

/** The absolute link makes openSubPathByComponents decide, for any value of the sysctl protected_symlinks. */
function stranger(source: string): void {
  make(`${source}/open`)
  make(`${source}/d`)
  fs.chmodSync(`${source}/open`, OPEN_TO_ALL)
  link(source, 'open/l', '../d')
  fs.lchownSync(`${source}/open/l`, 1000, 0)
  link(source, 'l', `${source}/open/l`)
}
