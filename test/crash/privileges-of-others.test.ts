import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotInject, killAtEach } from '../helpers/inject.ts'
import { PATIENCE } from '../helpers/size.ts'
import { listKillPoints } from '../helpers/strace-text.ts'
import { makeTree } from '../helpers/tree.ts'
import { Crashing } from './every-call.ts'
import { CAPABILITY, expectSame, GROUP, type Snapshot, setAttribute, snapshot, wipe } from './volume.ts'

const OWNER = 12345
/** Until each file was caught half way. */
const ROUNDS = 6
const title = `a crash during a change of a file whose owner is not root${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  it(
    "a crash after the chown of another user's file leaves it without set-gid and capability, and the log names the file",
    async () => {
      const on = new Crashing('tmpfs')
      let original: Snapshot = {}
      const prepare = async () => {
        wipe(on.node)
        fs.rmSync(on.node.log, { force: true })
        makeTree(fs, on.source, ['file suid 0755', 'file sgid 0755', 'file tool 0755'])
        for (const name of ['suid', 'sgid', 'tool']) fs.chownSync(`${on.source}/${name}`, OWNER, 5)
        fs.chmodSync(`${on.source}/suid`, 0o4755)
        fs.chmodSync(`${on.source}/sgid`, 0o2755)
        setAttribute(`${on.source}/tool`, 'security.capability', CAPABILITY)
        original = snapshot(on.source)
      }
      const costs: string[] = []
      const check = async () => {
        const now = snapshot(on.source)
        const lost = Object.keys(now).filter((path) => path !== '.' && isHalf(now, original, path))
        costs.push(lost.join())
        const reply = await on.node.call(...on.mountCall('a'))
        expect(reply.status).toBe('Success')
        // The reply counts what is not given back, and is silent where nothing is.
        if (reply.message !== undefined)
          expect(reply.message).toMatch(/^group 2000 was applied to 4 of 4, privileges not given back: \d /)
        await on.unmount('a')
        // Set-uid is the owner's own to give, and comes back.
        const forfeited = lost.filter((path) => path !== 'suid')
        const expected = { ...original }
        for (const path of forfeited) expected[path] = { ...bare(original, path) }
        expectSame(snapshot(on.source), expected)
        const told = JSON.stringify(on.node.logLines().filter((line) => line.verb === 'mount'))
        for (const path of forfeited) {
          expect(told).toContain(`"privileges not given back":{"count":1,"examples":["${path}"]}`)
        }
        if (forfeited.length === 0) expect(told).not.toContain('privileges not given back')
      }
      const ofInodes = /^(fchownat|fchmodat2|syscall_0x1c4|setxattr)$/
      const caught = () => [...new Set(costs.filter(Boolean))].sort()
      // On a busy machine another thread may make the change whose death was chosen: each round has deaths of its own.
      for (let round = 1; round <= ROUNDS && caught().length < 3; round++) {
        const { tried, missed } = await killAtEach(on.node, {
          args: on.mountCall('a'),
          prepare,
          choose: (calls) => listKillPoints(calls, ({ name }) => ofInodes.test(name), on.node.top),
          check,
        })
        console.log(`privileges of others: ${tried} points tried, ${tried - missed.length} deaths, all survived`)
        expect(missed).toEqual([])
      }
      expect(caught()).toEqual(['sgid', 'suid', 'tool'])
    },
    PATIENCE,
  )
})

function bare(original: Snapshot, path: string) {
  const inode = original[path]
  if (inode === undefined) throw new Error(path)
  return { ...inode, mode: '0755', attributes: [] }
}

/** Its group is given, its privileges are not back. */
function isHalf(now: Snapshot, original: Snapshot, path: string): boolean {
  const [inode, before] = [now[path], original[path]]
  if (inode?.gid !== GROUP) return false
  return inode.mode !== before?.mode || inode.attributes.length !== before.attributes.length
}
