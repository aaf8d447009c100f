import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { acl, setAttributes } from '../real-mounts/attributes.ts'

const CAPABILITIES = ['0sAAAAAgAgAAAAAAAAAAAAAAAAAAA=', '0sAQAAAgAgAAAAAAAAAAAAAAAAAAA=']
const DIRECTORIES = 2000
const FIFOS = 2000
const LINKS = 3000
const DEVICES = 20

/** A tree of so many mixed inodes, the same each time: what a volume may hold, in every combination. */
export function makeMixedTree(root: string, inodes: number): void {
  const random = numbers(3)
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
  const directories = ['.']
  const names: string[] = []
  const attributes: Record<string, Record<string, string>> = {}
  const add = (kind: string) => {
    const path = `${pick(directories)}/${kind}${names.length}`
    names.push(path)
    return path
  }
  for (let n = 0; n < DIRECTORIES; n++) {
    const path = add('d')
    fs.mkdirSync(`${root}/${path}`)
    directories.push(path)
  }
  const fifos = Array.from({ length: FIFOS }, () => add('p'))
  execFileSync('xargs', ['-0', 'mkfifo'], { cwd: root, input: fifos.join('\0') })
  for (let n = 0; n < DEVICES; n++) execFileSync('mknod', [add('c'), 'c', '1', '3'], { cwd: root })
  while (names.length < inodes - LINKS) {
    const path = add('f')
    fs.writeFileSync(`${root}/${path}`, random(8) ? '' : path)
    const kind = random(20)
    if (kind < 3) attributes[path] = { 'system.posix_acl_access': randomAcl(random) }
    if (kind === 3) attributes[path] = { 'security.capability': pick(CAPABILITIES), 'user.note': '0x6869' }
  }
  const inodesWithOwner = names.slice()
  for (const path of directories) {
    if (random(3) === 0) attributes[path] = { 'system.posix_acl_access': randomAcl(random) }
    if (random(3) === 0) attributes[path] = { ...attributes[path], 'system.posix_acl_default': randomAcl(random) }
  }
  const files = inodesWithOwner.slice(DIRECTORIES + FIFOS + DEVICES)
  for (let n = 0; n < LINKS; n++) {
    if (n % 3) fs.linkSync(`${root}/${pick(files)}`, `${root}/${add('h')}`)
    else fs.symlinkSync(pick(['/etc', 'nowhere', '../x']), `${root}/${add('l')}`)
  }
  for (const path of inodesWithOwner) {
    fs.lchownSync(`${root}/${path}`, pick([0, 0, 1000, 70_000]), pick([0, 5, 2000, 70_000]))
    // Also set-id and sticky bits, but not on most.
    fs.chmodSync(`${root}/${path}`, random(0o1000) | (random(4) ? 0 : random(8) << 9))
  }
  setAttributes(root, attributes)
  for (const path of inodesWithOwner)
    fs.utimesSync(`${root}/${path}`, random(2 ** 30), random(2 ** 30) + random(1000) / 1000)
}

/** Numbers that are the same in every run: a linear congruential generator. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function randomAcl(random: (below: number) => number): string {
  const bits = () => ['---', 'r--', 'rw-', 'r-x', 'rwx'][random(5)]
  const named = random(2) ? `,u:1000:${bits()},g:3000:${bits()}` : `,g:2000:${bits()}`
  return acl(`u::${bits()},g::${bits()}${named},m::${bits()},o::${bits()}`)
}
