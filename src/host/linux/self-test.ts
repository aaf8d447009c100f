import { type BigIntStats, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { formatError } from '../../refusal/refusal.ts'
import type { SelfTest } from '../diagnosis.ts'
import { Dirents } from '../dirents.ts'
import { closing, errorCode, type Handle, type Stat } from '../host.ts'
import { linuxInodes as inodes } from './inodes.ts'
import { AT_EMPTY_PATH, AT_FDCWD, arenaBytes, putEmpty, systemCall } from './kernel.ts'
import { linuxMounts } from './mounts.ts'

const FILE = Buffer.from('file')

/**
 * Compares modekeep's own system calls with Node's: on the node's files those that only look, on a detached file system
 * in memory, to which no path leads, those that change. What the kernel addon must refuse is tried too.
 */
export function selfTest(): SelfTest[] {
  return [
    compared('statx', () => ['/', '/etc', '/dev/null', '/proc/self'].map(lookedAt).find((said) => said !== '') ?? ''),
    compared('getdents64', () => differ(entries('/etc'), readdirSync('/etc').sort())),
    compared('errors', errors),
    compared('refusals of the kernel addon', refusals),
    compared('openat2', () => differ(refusal('/proc/self'), 'ELOOP')),
    ...onDetached((tree, path) => [
      compared('create and fchownat', () => {
        inodes.createFile(tree, FILE, 0o640)
        withFile(tree, (file) => inodes.chown(file, 4242))
        return differ(lstatSync(`${path}/file`).gid, 4242)
      }),
      compared('fchmodat2', () => {
        withFile(tree, (file) => inodes.chmod(file, 0o2751))
        return differ(lstatSync(`${path}/file`).mode & 0o7777, 0o2751)
      }),
      compared('extended attributes', () => {
        const value = Buffer.from([0, 1, 255])
        return withFile(tree, (file) => {
          inodes.setAttribute(file, 'trusted.modekeep', value)
          const read = Buffer.from(inodes.getAttribute(file, 'trusted.modekeep') ?? []).toString('hex')
          const names = inodes.attributeNames(file, tree, FILE)
          return differ([read, names], [value.toString('hex'), 'trusted.modekeep\0'])
        })
      }),
      compared('names that are no UTF-8', () => {
        const name = Buffer.from([0xff, 0xfe, 0x41])
        inodes.createFile(tree, name, 0o600)
        const [found] = readdirSync(path, { encoding: 'buffer' }).filter((bytes) => bytes[0] === 0xff)
        return differ(found?.toString('hex'), name.toString('hex'))
      }),
    ]),
  ]
}

function compared(name: string, compare: () => string): SelfTest {
  try {
    return { name, difference: compare() }
  } catch (error) {
    return { name, difference: formatError(error) }
  }
}

function differ(ours: unknown, nodes: unknown): string {
  const [one, other] = [JSON.stringify(ours), JSON.stringify(nodes)]
  return one === other ? '' : `it says ${one}, Node says ${other}`
}

function lookedAt(path: string): string {
  const at = path.lastIndexOf('/')
  const parent = inodes.openTrusted(path.slice(0, at) || '/')
  using _ = closing(inodes, parent)
  const name = path.slice(at + 1) || '.'
  const said = differ(ofStat(inodes.statEntry(parent, Buffer.from(name))), ofNode(lstatSync(path, { bigint: true })))
  return said && `${path}: ${said}`
}

// /proc has inodes of its own for every look at it; a directory's size and times may change between the two.
const ofStat = ({ mode, uid, gid, links }: Stat) => [mode, uid, gid, links]
const ofNode = ({ mode, uid, gid, nlink }: BigIntStats) => [mode, uid, gid, nlink].map(Number)

function entries(path: string): string[] {
  const above = inodes.openTrusted(path)
  using _above = closing(inodes, above)
  const directory = inodes.openDirectory(above, Buffer.from('.'))
  using _directory = closing(inodes, directory)
  const names: string[] = []
  for (let block = inodes.readEntries(directory); block.length > 0; block = inodes.readEntries(directory)) {
    const dirents = new Dirents(block)
    while (dirents.next()) names.push(Buffer.from(dirents.name).toString())
  }
  return names.sort()
}

function errors(): string {
  const root = inodes.openTrusted('/')
  using _ = closing(inodes, root)
  const names = ['modekeep-has-no-such-name', 'proc/self/exe/x']
  const ours = names.map((name) => codeOf(() => inodes.close(inodes.openEntry(root, Buffer.from(name)))))
  return differ(
    ours,
    names.map((name) => codeOf(() => lstatSync(`/${name}`))),
  )
}

/** Harmless ones: the kernel would only say ENOENT or EFAULT. */
function refusals(): string {
  const [statx, openat] = [systemCall('statx'), systemCall('openat')]
  const end = arenaBytes.length
  const results = {
    'a fraction': openat(0.5, putEmpty()),
    'no number': openat(Number.NaN, putEmpty()),
    'more than 32 bits': openat(2 ** 32, putEmpty()),
    'a name outside of the arena': openat(AT_FDCWD, -1),
    'a name behind the arena': openat(AT_FDCWD, end),
    'a structure that leaves the arena': statx(AT_FDCWD, putEmpty(), AT_EMPTY_PATH, 0, end - 255),
  }
  const made = Object.entries(results).filter(([, result]) => !Number.isNaN(result))
  return made.map(([what]) => `${what} is not refused`).join(', ')
}

function refusal(path: string): string {
  if (readlinkSync(path) !== String(process.pid) || readFileSync('/proc/self/comm', 'utf8') === '') return 'no link'
  return codeOf(() => inodes.close(inodes.openLinkFree(path)))
}

function codeOf(attempt: () => unknown): string {
  try {
    attempt()
    return ''
  } catch (error) {
    return errorCode(error) ?? String(error)
  }
}

function withFile<T>(tree: Handle, use: (file: Handle) => T): T {
  const file = inodes.openEntry(tree, FILE)
  using _ = closing(inodes, file)
  return use(file)
}

function onDetached(tests: (tree: Handle, path: string) => SelfTest[]): SelfTest[] {
  try {
    const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
    using _ = closing(inodes, tree)
    return tests(tree, `/proc/self/fd/${tree}`)
  } catch (error) {
    return [{ name: 'calls that change', difference: `not tried: ${formatError(error)}` }]
  }
}
