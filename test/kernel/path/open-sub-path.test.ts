import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Handle } from '../../../src/kernel/host.ts'
import { parseMountinfo } from '../../../src/kernel/mount-table/mountinfo.ts'
import { openSubPath } from '../../../src/kernel/path/open-sub-path.ts'
import { onEveryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { makeTree } from '../../helpers/tree.ts'
import { CASES } from './cases.ts'
import { KERNEL_CASES } from './kernel-cases.ts'
import { identityAt, outcomeOf, WAYS } from './ways.ts'

/** One file system for all cases; each has a directory of its own. */
function inOneStage(open: () => Stage) {
  const here = { stage: undefined as unknown as Stage, source: '', root: 0 as Handle }
  let count = 0
  beforeAll(() => {
    here.stage = open()
  })
  afterAll(() => here.stage.close())
  beforeEach(() => {
    const top = `${here.stage.top}/case${count++}`
    here.source = `${top}/volumes/data`
    makeTree(here.stage.fs, `${top}/outside`, ['dir d 0755', 'file secret 0600'])
    makeTree(here.stage.fs, `${top}/volumes/sibling`, ['dir d 0755'])
    makeTree(here.stage.fs, here.source, [])
    here.root = here.stage.host.inodes.openLinkFree(here.source)
  })
  afterEach(() => here.stage.host.inodes.close(here.root))
  return here
}

const openHandles = ({ world }: Stage) => world?.handles.size ?? fs.readdirSync('/proc/self/fd').length

function check({ stage, source, root }: ReturnType<typeof inOneStage>, subPath: string, expected: string | RegExp) {
  const before = openHandles(stage)
  const [atOnce, ...byParts] = WAYS.map(([, way]) => outcomeOf(way(stage.host.inodes), root, subPath))
  for (const outcome of byParts) expect(outcome).toBe(atOnce)
  if (typeof expected !== 'string') expect(atOnce).toMatch(expected)
  else expect(atOnce).toBe(identityAt(stage.host, expected === '' ? source : `${source}/${expected}`))
  expect(openHandles(stage)).toBe(before)
}

onEveryStage('a subPath', (open) => {
  const here = inOneStage(open)
  const [found, refused] = [
    CASES.filter(([, , , o]) => typeof o === 'string'),
    CASES.filter(([, , , o]) => typeof o !== 'string'),
  ]
  const fill = (tree: string) => {
    makeTree(
      here.stage.fs,
      here.source,
      tree
        .split(', ')
        .filter(Boolean)
        .map((spec) => spec.replaceAll('@', here.source)),
    )
  }

  it.each(found)('opens %s, in one call and by components', (_name, tree, subPath, outcome) => {
    fill(tree)
    check(here, subPath, outcome)
  })

  it.each(refused)('refuses %s, in one call and by components', (_name, tree, subPath, outcome) => {
    fill(tree)
    check(here, subPath, outcome)
  })
})

onKernelStages('a subPath', (open) => {
  const here = inOneStage(open)
  afterEach(() => {
    const mounts = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')).map((row) => row.mountPoint)
    for (const path of mounts.reverse()) if (path.startsWith(`${here.source}/`)) execFileSync('umount', ['-l', path])
  })

  it.each(KERNEL_CASES)(
    'has the same result in one call and by components if the subPath is %s',
    async (_name, fill, subPath, outcome) => {
      await fill(here.source)
      check(here, subPath, outcome)
    },
  )

  it('is resolved by the kernel alone if possible', () => {
    makeTree(fs, here.source, ['file ..1/conf/key 0644', 'link ..data ..1', 'link conf ..data/conf'])
    const never = () => {
      throw new Error('not at once')
    }
    const inodes = { ...here.stage.host.inodes, openEntry: never, readLink: never }
    expect(outcomeOf(inodes, here.root, 'conf/key')).toBe(identityAt(here.stage.host, `${here.source}/..1/conf/key`))
  })

  it('of a FIFO without a writer is opened without waiting for one, and without becoming its reader', () => {
    execFileSync('mkfifo', [`${here.source}/fifo`])
    for (const [, way] of WAYS) {
      const handle = openSubPath(way(here.stage.host.inodes), here.root, 'fifo')
      expect(() => fs.openSync(`${here.source}/fifo`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK)).toThrow('ENXIO')
      here.stage.host.inodes.close(handle)
    }
  })

  it('is refused through a link in /proc, even to a directory inside', () => {
    makeTree(fs, here.source, ['dir proc 0755', 'dir d 0755'])
    execFileSync('mount', ['-t', 'proc', 'proc', `${here.source}/proc`])
    const fd = fs.openSync(`${here.source}/d`, 'r')
    try {
      check(here, `proc/${process.pid}/fd/${fd}`, /meets the link ".*" where links are not followed/)
    } finally {
      fs.closeSync(fd)
    }
  })
})
