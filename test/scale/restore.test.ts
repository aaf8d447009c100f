import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { applyToDirectory, restoreDirectory } from '../helpers/walk.ts'
import { attributes } from '../real-mounts/attributes.ts'
import { makeMixedTree } from './mixed-tree.ts'

const INODES = sized(20_000, 100_000)
const GROUP = 2000
const title = `a restore of a mixed volume${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  it(`a restore returns the modes, owners, ACLs, capabilities, other attributes and times of ${INODES} inodes`, async () => {
    const { place, state } = disk()
    const directory = `${place}/data`
    fs.mkdirSync(directory)
    makeMixedTree(directory, INODES)
    const walked = { directory, journal: `${state}/journal.sqlite` }
    const before = listing(directory)
    expect(before.length).toBeGreaterThan(INODES)

    const owned = await applyToDirectory(walked, GROUP)
    expect(Object.keys(owned.left).sort()).toEqual(['device', 'symlink'])
    expect(differences(listing(directory), before.map(given))).toEqual([])

    const { left } = await restoreDirectory(walked)
    expect(left).toEqual({})
    expect(differences(listing(directory), before)).toEqual([])
  })
})

/** An ext4 of its own with room for the inodes, and a place in memory for the journal. */
function disk(): { place: string; state: string } {
  const base = fs.mkdtempSync(`${tmpdir()}/modekeep-disk-`)
  const place = `${base}/disk`
  const state = `${base}/state`
  fs.mkdirSync(place)
  fs.mkdirSync(state)
  execFileSync('truncate', ['-s', '1G', `${base}/image`])
  execFileSync(requireProgram('mkfs.ext4'), ['-q', '-F', '-N', String(2 * INODES), `${base}/image`])
  execFileSync('mount', ['-o', 'loop', `${base}/image`, place])
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'state', state])
  onTestFinished(() => {
    execFileSync('umount', [place, state])
    fs.rmSync(base, { recursive: true })
  })
  return { place, state }
}

/** A line for each inode and one for each extended attribute, in the order of the directories. */
function listing(root: string): string[] {
  const printf = ['-printf', '%y %m %U %G %n %T@ %P\\n']
  const inodes = execFileSync('find', [root, ...printf], { maxBuffer: 1 << 30 }).toString()
  return `${inodes}${attributes(root)}`.split('\n')
}

/** What a walk makes of a line: everything but a link or a device gets the group, a directory set-gid. */
function given(line: string): string {
  const [, type = '', mode = '', uid, rest] = /^([dfps]) (\d+) (\d+) \d+ (.*)$/.exec(line) ?? []
  if (rest === undefined) return line
  const bits = Number.parseInt(mode, 8) | (type === 'd' ? 0o2000 : 0)
  return `${type} ${bits.toString(8)} ${uid} ${GROUP} ${rest}`
}

/** The first few: a listing of all would be unreadable. */
function differences(now: readonly string[], wanted: readonly string[]): string[] {
  const wrong = now.flatMap((line, index) => (line === wanted[index] ? [] : [`${line}, not ${wanted[index]}`]))
  return now.length === wanted.length ? wrong.slice(0, 5) : [`${now.length} lines, not ${wanted.length}`]
}
