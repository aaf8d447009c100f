import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addSkipReason, cannotMountWith, requireProgram } from '../helpers/needs.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import { applyToDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'
import { acl, attributes, setAttributes } from '../real-mounts/attributes.ts'
import { attacked } from './restless.ts'

const skipReason = cannotMountWith('setfattr', 'getfattr')
// A call that walks nothing has 90 MB of the 256.
const MEMORY = 160 * 2 ** 20

// Of xfs an ACL may have 5,461 entries.
const LARGEST = 5400

function volumeOn(fsType: 'ext4' | 'xfs'): Walked {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-acls-`)
  const [disk, volume] = [`${top}/disk`, `${top}/volume`]
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  execFileSync('truncate', ['-s', '2G', disk])
  execFileSync(requireProgram(`mkfs.${fsType}`), ['-q', disk])
  fs.mkdirSync(volume)
  execFileSync('mount', ['-o', 'loop', disk, volume])
  onTestFinished(() => {
    execFileSync('umount', ['-l', volume])
  })
  fs.mkdirSync(`${volume}/data`)
  return { directory: `${volume}/data`, journal: `${top}/journal.db` }
}

/** @param from the first of the users that it names */
function aclOf(entries: number, from = 10_000): string {
  const users = Array.from({ length: entries - 4 }, (_, at) => `u:${from + at}:rw-`)
  return acl(['u::rwx', 'g::r-x', 'm::r-x', 'o::---', ...users].join(','))
}

/** So many files that have their directory's default ACL. */
function inherit(directory: string, files: number, entries: number): void {
  fs.mkdirSync(`${directory}/shared`)
  setAttributes(directory, { shared: { 'system.posix_acl_default': aclOf(entries) } })
  for (let at = 0; at < files; at++) fs.writeFileSync(`${directory}/shared/${at}`, '')
}

const tree = ({ directory }: Walked) => {
  const listed = listTree(fs, directory)
  return { modes: modes(listed), groups: groups(listed), attributes: attributes(directory) }
}
const acls = ({ journal }: Walked) => {
  const database = new DatabaseSync(journal)
  const [row] = database.prepare('SELECT count(*) AS count FROM acls').all()
  database.close()
  return Number(row?.count)
}

describe.skipIf(skipReason !== '')(addSkipReason('a pod that gives its inodes ACLs', skipReason), () => {
  it.each(
    (['ext4', 'xfs'] as const).flatMap((fsType) =>
      (['keep', 'grant'] as const).map((access) => [fsType, access] as const),
    ),
  )('gets them back unchanged, on %s after %s', async (fsType, access) => {
    const walked = volumeOn(fsType)
    const { directory } = walked
    makeTree(fs, directory, ['file plain 0640 5', 'file odd 0600 7', 'dir own 2750 8', 'file own/one 4755 9'])
    inherit(directory, 300, 20)
    setAttributes(directory, {
      odd: { 'system.posix_acl_access': aclOf(5, 7) },
      own: { 'system.posix_acl_access': aclOf(6, 8), 'system.posix_acl_default': aclOf(7) },
    })
    fs.linkSync(`${directory}/odd`, `${directory}/linked`)
    // A link of this instant is not counted on.
    await setTimeout(50)
    const before = tree(walked)
    await applyToDirectory(walked, 2000, {}, access)
    // Of the files, of `odd` and of `own`; the last two are of other entries once they are granted.
    expect(acls(walked)).toBe(access === 'keep' ? 3 : 6)
    expect(new Set(Object.values(tree(walked).groups))).toEqual(new Set([2000]))
    await applyToDirectory(walked, 3000, {}, access)
    await restoreDirectory(walked)
    expect(tree(walked)).toEqual(before)
    expect(acls(walked)).toBe(0)
  })

  it('does not fill the disk with one ACL on many inodes', async () => {
    const walked = volumeOn('xfs')
    inherit(walked.directory, 300, LARGEST)
    await applyToDirectory(walked, 2000)
    expect(fs.statSync(walked.journal).size).toBeLessThan(1_000_000)
    const { memory, refusal } = await attacked(() => restoreDirectory(walked))
    expect(refusal).toBeUndefined()
    expect(memory).toBeLessThan(MEMORY)
    expect(new Set(Object.values(tree(walked).groups))).toEqual(new Set([0]))
  })

  it('fills neither disk nor memory with many different large ACLs', async () => {
    const walked = volumeOn('xfs')
    const FILES = 150
    const names = Array.from({ length: FILES }, (_, at) => `large/${at}`)
    makeTree(fs, walked.directory, ['file kept 0640 5', ...names.map((name) => `file ${name} 0640 5`)])
    for (let at = 0; at < FILES; at += 50) {
      const some = names.slice(at, at + 50)
      setAttributes(
        walked.directory,
        Object.fromEntries(
          some.map((name, index) => [name, { 'system.posix_acl_access': aclOf(LARGEST, 10_000 + at + index) }]),
        ),
      )
    }
    const walk = await attacked(() => applyToDirectory(walked, 2000))
    expect([walk.refusal, acls(walked)]).toEqual([undefined, FILES])
    expect(walk.memory).toBeLessThan(MEMORY)
    const again = await attacked(() => applyToDirectory(walked, 3000))
    expect([again.refusal, acls(walked)]).toEqual([undefined, FILES])
    expect(again.memory).toBeLessThan(MEMORY)
    fs.rmSync(`${walked.directory}/large`, { recursive: true })
    await applyToDirectory(walked, 2000)
    expect(acls(walked)).toBe(0)
    expect(fs.statSync(walked.journal).size).toBeLessThan(200_000)
  })
})
