import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { makeTree } from '../helpers/tree.ts'

const NAMES = [0, 1, 2, 3]
const DEPTH = 45

/** A small volume with ways out of it, the node's own files around it, and the renames that open the ways. */
export interface Arena {
  volume: string
  /** Each inode a volume's walk must not touch, and what may be known of it. */
  outside(): Record<string, string>
  /** Whether a file outside that has no name in the volume, and only exchanged links lead to, has this group. */
  isLedOut(group: number): boolean
  /** Arguments of the actors: who exchanges or moves what. */
  swapLinks: string[]
  swapSpecials: string[]
  swapParents: string[]
  moveOut: string[]
}

/** @param top a directory on one file system, so that renames can leave the volume */
export function makeArena(top: string): Arena {
  const volume = `${top}/volumes/data`
  const outside = `${top}/outside`
  const sibling = `${top}/volumes/sibling`
  makeTree(
    fs,
    outside,
    NAMES.flatMap((n) => [`dir d${n} 0700`, ...NAMES.map((m) => `file d${n}/f${m} 0600`)]),
  )
  makeTree(fs, outside, ['file linked 0600', 'file kept 0600', ...NAMES.map((n) => `file backup${n} 0600`)])
  makeTree(fs, sibling, ['file theirs 0600', 'dir 2 0700', 'file 2/theirs 0600'])

  const swapLinks = NAMES.flatMap((n) => [pair(`d${n}`, `to-d${n}`), pair(`s${n}`, `to-s${n}`)]).flat()
  makeTree(fs, volume, [
    ...NAMES.flatMap((n) => NAMES.map((m) => `file d${n}/f${m} ${m % 2 ? '0640' : '4750'} 5`)),
    ...NAMES.flatMap((n) => [`link to-d${n} ${outside}/d${n}`, `file s${n} 0640`, `link to-s${n} ../../outside/kept`]),
  ])

  makeTree(
    fs,
    volume,
    NAMES.map((n) => `file p${n} 0660 7`),
  )
  execFileSync('mknod', ['-m', '0600', `${volume}/null`, 'c', '1', '3'])
  execFileSync('mknod', ['-m', '0600', `${volume}/loop`, 'b', '7', '0'])
  execFileSync('mkfifo', ['-m', '0600', `${volume}/fifo`])
  fs.linkSync(`${outside}/linked`, `${volume}/linked`)
  const swapSpecials = [pair('p0', 'null'), pair('p1', 'loop'), pair('p2', 'fifo'), pair('p3', 'linked')].flat()

  makeTree(
    fs,
    volume,
    NAMES.flatMap((n) => [`file x${n}/a 0640`, `dir y${n} 0755`]),
  )
  for (const n of NAMES) fs.linkSync(`${outside}/backup${n}`, `${volume}/x${n}/backup`)
  const swapParents = NAMES.flatMap((n) => pair(`x${n}`, `y${n}`))

  const chain = Array.from({ length: DEPTH }, (_, n) => n).join('/')
  makeTree(fs, volume, [`file ${chain}/end 0640`, 'file 0/1/a 0640', 'file 0/1/2/3/4/a 0640', 'file m0/a 0640'])
  const moveOut = [`${volume}/0/1/2`, `${sibling}/out`, `${volume}/m0`, `${sibling}/m0`]

  function pair(a: string, b: string): string[] {
    return [`${volume}/${a}`, `${volume}/${b}`]
  }

  function list(root: string, timeless: readonly string[], names: readonly string[] = ['.', ...below(root)]) {
    return names.map((name) => {
      const { mode, uid, gid, ctimeNs } = fs.lstatSync(`${root}/${name}`, { bigint: true })
      return [`${root}/${name}`, `${mode.toString(8)} ${uid} ${gid} ${timeless.includes(name) ? '' : ctimeNs}`]
    })
  }

  return {
    volume,
    // The actors' own renames move the ctime of what they rename, and of a directory they rename into.
    outside: () =>
      Object.fromEntries([
        ...list(outside, ['linked']),
        ...list(sibling, ['.']),
        ...list(volume, ['null', 'loop'], ['null', 'loop']),
      ]),
    isLedOut: (group) => NAMES.some((n) => NAMES.some((m) => fs.lstatSync(`${outside}/d${n}/f${m}`).gid === group)),
    swapLinks,
    swapSpecials,
    swapParents,
    moveOut,
  }
}

function below(root: string): string[] {
  return fs.readdirSync(root, { recursive: true, encoding: 'utf8' })
}
