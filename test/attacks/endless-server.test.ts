import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectInTime } from '../helpers/busy-machine.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { applyToDirectory, planDirectory } from '../helpers/walk.ts'
import { attacked, startRestless } from './restless.ts'

const skipReason = cannotServe()
const WALKS = { walk: applyToDirectory, survey: planDirectory }
// Ten, where the machine does nothing else: each level takes a dozen replies.
const MOST_SECONDS = 30
const MEMORY = 160 * 2 ** 20

describe.skipIf(skipReason !== '')(addSkipReason('a server with endless directories', skipReason), () => {
  it.each([
    ['walk', 'circle', /^directory "\." lists the same entries again and again/],
    ['survey', 'circle', /^directory "\." lists the same entries again and again/],
    ['walk', 'well', /is nested more than 16384 deep/],
    ['survey', 'well', /is nested more than 16384 deep/],
    // It is seen to be where the walk is already.
    ['walk', 'mirror', undefined],
    ['survey', 'mirror', undefined],
  ] as const)('does not keep a %s from ending (%s) with little memory', async (what, mode, said) => {
    const top = fs.mkdtempSync(`${tmpdir()}/modekeep-endless-`)
    const directory = `${top}/served`
    fs.mkdirSync(directory)
    await using server = await startRestless(mode, directory, 'endless-fuse')
    server.resume()
    onTestFinished(() => {
      execFileSync('umount', ['-l', directory])
    })
    const walked = { directory, journal: `${top}/journal.sqlite` }
    const { seconds, memory, refusal } = await attacked(() => WALKS[what](walked, 2000))
    expect(server.isAtIt()).toBe(true)
    if (said) expect(refusal).toMatch(said)
    else expect(refusal).toBeUndefined()
    expectInTime(seconds * 1000, MOST_SECONDS * 1000)
    expect(memory).toBeLessThan(MEMORY)
  })
})
