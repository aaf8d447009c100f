import { type BigIntStats, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { formatError } from '../../errors/refusal.ts'
import { DirentIterator } from '../dirents.ts'
import { deferHandleClose, getErrno, type Handle, type Stat } from '../host.ts'
import { linuxInodes as inodes } from './inodes.ts'
import { AT_EMPTY_PATH, AT_FDCWD, arenaBytes, createSystemCall, writeEmptyNameArgument } from './kernel.ts'
import { linuxMounts } from './mounts.ts'

const TEST_FILE_NAME = Buffer.from('file')

/** Result of a system call that was compared with Node's own, or that the addon must refuse. */
export interface SelfTestResult {
  name: string
  /** Empty if the results agree. */
  difference: string
}

/**
 * Compares modekeep's own system calls with Node's. Calls that only read run on the node's files. Calls that change
 * something run on a detached file system in memory, which no path reaches. It also tries calls that the kernel addon
 * must refuse.
 */
export function runSelfTest(): SelfTestResult[] {
  return [
    runComparison(
      'statx',
      () =>
        ['/', '/etc', '/dev/null', '/proc/self'].map(compareStatResults).find((difference) => difference !== '') ?? '',
    ),
    runComparison('getdents64', () => describeDifference(listEntries('/etc'), readdirSync('/etc').sort())),
    runComparison('errors', compareErrors),
    runComparison('refusals of the kernel addon', findUnrefusedCalls),
    runComparison('openat2', () => describeDifference(readLinkRefusal('/proc/self'), 'ELOOP')),
    ...runOnDetachedTree((tree, path) => [
      runComparison('create and fchownat', () => {
        inodes.createFile(tree, TEST_FILE_NAME, 0o640)
        withTestFile(tree, (file) => inodes.chown(file, 4242))
        return describeDifference(lstatSync(`${path}/file`).gid, 4242)
      }),
      runComparison('fchmodat2', () => {
        withTestFile(tree, (file) => inodes.chmod(file, 0o2751))
        return describeDifference(lstatSync(`${path}/file`).mode & 0o7777, 0o2751)
      }),
      runComparison('extended attributes', () => {
        const value = Buffer.from([0, 1, 255])
        return withTestFile(tree, (file) => {
          inodes.setAttribute(file, 'trusted.modekeep', value)
          const read = Buffer.from(inodes.getAttribute(file, 'trusted.modekeep') ?? []).toString('hex')
          // A security module, such as SELinux, adds attributes of its own.
          const names = inodes.attributeNames(file, tree, TEST_FILE_NAME).split('\0')
          const own = names.filter((name) => name.startsWith('trusted.'))
          return describeDifference([read, own], [value.toString('hex'), ['trusted.modekeep']])
        })
      }),
      runComparison('names that are no UTF-8', () => {
        const name = Buffer.from([0xff, 0xfe, 0x41])
        inodes.createFile(tree, name, 0o600)
        const [storedName] = readdirSync(path, { encoding: 'buffer' }).filter((bytes) => bytes[0] === 0xff)
        return describeDifference(storedName?.toString('hex'), name.toString('hex'))
      }),
    ]),
  ]
}

function runComparison(name: string, compare: () => string): SelfTestResult {
  try {
    return { name, difference: compare() }
  } catch (error) {
    return { name, difference: formatError(error) }
  }
}

function describeDifference(ownResult: unknown, nodeResult: unknown): string {
  const [own, node] = [JSON.stringify(ownResult), JSON.stringify(nodeResult)]
  return own === node ? '' : `it says ${own}, Node says ${node}`
}

function compareStatResults(path: string): string {
  const slash = path.lastIndexOf('/')
  const parent = inodes.openTrusted(path.slice(0, slash) || '/')
  using _ = deferHandleClose(inodes, parent)
  const name = path.slice(slash + 1) || '.'
  const difference = describeDifference(
    pickStat(inodes.statEntry(parent, Buffer.from(name))),
    pickNodeStat(lstatSync(path, { bigint: true })),
  )
  return difference && `${path}: ${difference}`
}

// /proc creates inodes for each lookup, and a directory's size and times may change between the two calls.
const pickStat = ({ mode, uid, gid, links }: Stat) => [mode, uid, gid, links]
const pickNodeStat = ({ mode, uid, gid, nlink }: BigIntStats) => [mode, uid, gid, nlink].map(Number)

function listEntries(path: string): string[] {
  const above = inodes.openTrusted(path)
  using _above = deferHandleClose(inodes, above)
  const directory = inodes.openDirectory(above, Buffer.from('.'))
  using _directory = deferHandleClose(inodes, directory)
  const names: string[] = []
  for (let block = inodes.readEntries(directory); block.length > 0; block = inodes.readEntries(directory)) {
    const dirents = new DirentIterator(block)
    while (dirents.next()) names.push(Buffer.from(dirents.name).toString())
  }
  return names.sort()
}

function compareErrors(): string {
  const root = inodes.openTrusted('/')
  using _ = deferHandleClose(inodes, root)
  const names = ['modekeep-has-no-such-name', 'proc/self/exe/x']
  const ownCodes = names.map((name) => readErrorCode(() => inodes.close(inodes.openEntry(root, Buffer.from(name)))))
  return describeDifference(
    ownCodes,
    names.map((name) => readErrorCode(() => lstatSync(`/${name}`))),
  )
}

/** The calls are harmless even if not refused: the kernel would return ENOENT or EFAULT. */
function findUnrefusedCalls(): string {
  const [statx, openat] = [createSystemCall('statx'), createSystemCall('openat')]
  const end = arenaBytes.length
  const results = {
    'a fraction': openat(0.5, writeEmptyNameArgument()),
    'no number': openat(Number.NaN, writeEmptyNameArgument()),
    'more than 32 bits': openat(2 ** 32, writeEmptyNameArgument()),
    'a name outside of the arena': openat(AT_FDCWD, -1),
    'a name behind the arena': openat(AT_FDCWD, end),
    'a structure that leaves the arena': statx(AT_FDCWD, writeEmptyNameArgument(), AT_EMPTY_PATH, 0, end - 255),
  }
  const accepted = Object.entries(results).filter(([, result]) => !Number.isNaN(result))
  return accepted.map(([description]) => `${description} is not refused`).join(', ')
}

function readLinkRefusal(path: string): string {
  if (readlinkSync(path) !== String(process.pid) || readFileSync('/proc/self/comm', 'utf8') === '') return 'no link'
  return readErrorCode(() => inodes.close(inodes.openLinkFree(path)))
}

function readErrorCode(attempt: () => unknown): string {
  try {
    attempt()
    return ''
  } catch (error) {
    return getErrno(error) ?? String(error)
  }
}

function withTestFile<T>(tree: Handle, use: (file: Handle) => T): T {
  const file = inodes.openEntry(tree, TEST_FILE_NAME)
  using _ = deferHandleClose(inodes, file)
  return use(file)
}

function runOnDetachedTree(tests: (tree: Handle, path: string) => SelfTestResult[]): SelfTestResult[] {
  try {
    const tree = linuxMounts.createTree('tmpfs', ['size=64k'])
    using _ = deferHandleClose(inodes, tree)
    return tests(tree, `/proc/self/fd/${tree}`)
  } catch (error) {
    return [{ name: 'calls that change', difference: `not tried: ${formatError(error)}` }]
  }
}
