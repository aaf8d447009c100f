import * as fs from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { cannotInject, traceModekeep } from '../helpers/inject.ts'
import { makeTree } from '../helpers/tree.ts'
import { Crashing } from './every-call.ts'
import { GROUP } from './volume.ts'

const [DIRECTORIES, FILES] = [20, 1000]
const title = `kubelet restarted in mid-walk${cannotInject && ` (skipped: ${cannotInject})`}`

// kubernetes/kubernetes#89776: kubelet dies in its walk, finds the root right after its restart, and the pod starts on a
// volume of two groups.
describe.skipIf(cannotInject !== '')(title, () => {
  const on = () => {
    const crashing = new Crashing('tmpfs')
    const specs = Array.from({ length: DIRECTORIES * FILES }, (_, n) => `file d${n % DIRECTORIES}/f${n} 0640 5`)
    makeTree(fs, crashing.source, specs)
    return crashing
  }
  const groupsIn = (root: string) => {
    const groups = new Map<number, number>()
    for (const entry of ['', ...(fs.readdirSync(root, { recursive: true }) as string[])]) {
      const { gid } = fs.lstatSync(`${root}/${entry}`)
      groups.set(gid, (groups.get(gid) ?? 0) + 1)
    }
    return groups
  }
  const ALL = new Map([[GROUP, 1 + DIRECTORIES + DIRECTORIES * FILES]])

  /** Kills the call once it has given the group to some of the volume, and before it has to all. */
  async function dieInMidWalk({ node, source }: Crashing, args: readonly string[]): Promise<void> {
    const { child, ended } = node.start(args)
    let over = false
    void ended.then(() => {
      over = true
    })
    const begun = () => Array.from({ length: DIRECTORIES }, (_, n) => `${source}/d${n}/f${n}`).some(isOwned)
    while (!over && !begun()) await turn()
    child.kill('SIGKILL')
    await ended
  }
  const isOwned = (path: string) => fs.statSync(path).gid === GROUP

  it("after kubelet's restart in mid-walk the pod sees no volume before all inodes have one group", async () => {
    const crashing = on()
    const { node, source } = crashing
    const directory = node.podDirectory('a')
    const args = crashing.mountCall('a')
    const empty = fs.statSync(directory).ino

    await dieInMidWalk(crashing, args)
    const left = groupsIn(source)
    expect([...left.keys()].sort()).toEqual([0, 5, GROUP].filter((gid) => left.has(gid)).sort())
    expect(left.get(GROUP)).toBeLessThan(ALL.get(GROUP) ?? 0)
    expect(left.get(GROUP)).toBeGreaterThan(0)
    // The root is last: so OnRootMismatch, which checks only the root, walks again.
    expect(fs.statSync(source).gid).toBe(0)
    expect(node.layers('a')).toEqual([])

    const { ended } = node.start(args)
    let answer: { text: string } | undefined
    void ended.then((result) => {
      answer = result
    })
    let looks = 0
    while (answer === undefined) {
      // The last file in the order of the walk is not known; any that is not owned yet says that it goes on.
      const walking = !isOwned(source)
      const nothingYet = fs.statSync(directory).ino === empty
      if (walking) looks++
      if (!nothingYet) expect(groupsIn(directory)).toEqual(ALL)
      await turn()
    }
    expect(looks).toBeGreaterThan(10)
    expect(answer.text).toBe('{"status":"Success"}\n')
    expect(groupsIn(directory)).toEqual(ALL)
    await crashing.unmount('a')
    expect(groupsIn(source)).toEqual(
      new Map([
        [0, 1 + DIRECTORIES],
        [5, DIRECTORIES * FILES],
      ]),
    )
  })

  it("after kubelet's restart in mid-walk the mount is attached after the last system call that changes an inode", async () => {
    const crashing = on()
    const args = crashing.mountCall('a')
    await dieInMidWalk(crashing, args)
    const calls = await traceModekeep(crashing.node, args, 'fchownat,setxattr,move_mount')
    const names = calls.map(({ name }) => name)
    expect(names.filter((name) => name === 'fchownat').length).toBeGreaterThan(100)
    expect(names.filter((name) => name === 'move_mount')).toHaveLength(1)
    // A call unknown to strace is always in its list: fchmodat2 to one older than 6.6.
    expect(names.slice(names.indexOf('move_mount') + 1)).toEqual([])
    expect(groupsIn(crashing.source)).toEqual(ALL)
  })
})
