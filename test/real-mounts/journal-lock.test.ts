import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Crashing } from '../crash/every-call.ts'
import { journalPath } from '../crash/journal-files.ts'
import { expectSame, snapshot } from '../crash/volume.ts'
import { isRoot } from '../helpers/stage.ts'

const suiteTitle = `a journal that another process has locked${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

const HOLDER = `
  const { DatabaseSync } = require('node:sqlite')
  new DatabaseSync(process.argv[1]).exec('BEGIN EXCLUSIVE')
  console.log('held')
  setInterval(() => {}, 1000)
`

describe.skipIf(!isRoot)(suiteTitle, () => {
  /** Another process has the database to itself until the function is called. */
  async function lock(path: string): Promise<() => Promise<void>> {
    const child = spawn(process.execPath, ['-e', HOLDER, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    return async () => {
      child.kill('SIGKILL')
      await gone
    }
  }

  /** A volume of which another walk has something to record. */
  async function arrange() {
    const on = new Crashing('tmpfs')
    on.fresh()
    // A restore that has put back all forgets the journal, but not what a user changed.
    const theirs = `${on.source}/theirs`
    fs.writeFileSync(theirs, '', { mode: 0o640 })
    expect(await on.node.call(...on.mountCall('a'))).toEqual({ status: 'Success' })
    fs.chmodSync(theirs, 0o600)
    await on.unmount('a')
    fs.rmSync(theirs)
    return on
  }

  it('for long: the mount is refused with the file named, nothing changes, and it continues once the journal is free', async () => {
    const on = await arrange()
    const path = journalPath(on.node)
    const release = await lock(path)
    const { status, message } = await on.node.call(...on.mountCall('a'))
    expect(status).toBe('Failure')
    expect(message).toContain(`the ownership journal ${path} cannot be used (database is locked)`)
    expectSame(snapshot(on.source), on.original)
    expect(on.node.layers('a')).toEqual([])
    expect(on.node.mountState()).toEqual([])
    await release()
    await on.mount('a')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.original)
  })

  it('at an unmount with a restore: the pod unmounts, and the next unmount restores', async () => {
    const on = await arrange()
    await on.mount('a')
    const release = await lock(journalPath(on.node))
    await on.unmount('a')
    expectSame(snapshot(on.source), on.whole)
    expect(JSON.stringify(on.node.logLines())).toContain('volume not restored, tried again at its next unmount')
    await release()
    await on.mount('a')
    await on.unmount('a')
    expectSame(snapshot(on.source), on.original)
  })

  it('for a moment: the mount waits', async () => {
    const on = await arrange()
    const release = await lock(journalPath(on.node))
    const mounted = on.mount('a')
    await sleep(500)
    expectSame(snapshot(on.source), on.original)
    await release()
    await mounted
    await on.unmount('a')
    on.expectOriginal()
  })
})
