import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openNodeDirectoryVolume } from '../../../src/fsgroup/volume-by-hand.ts'
import type { Host } from '../../../src/kernel/host.ts'
import { linuxHost } from '../../../src/kernel/linux/index.ts'
import { createPathLookups } from '../../../src/kernel/mount-table/responsiveness.ts'
import { healMount } from '../../../src/repair/heal-record.ts'
import { findVolumePath } from '../../../src/state/find-volume.ts'
import { listReadableMountRecords } from '../../../src/state/mount-record.ts'
import { compileHolder } from '../../helpers/held-directory.ts'
import { isRoot, kernelStage, type Stage } from '../../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
/** Seconds after which the directory is released: a call in this process that waits for it stops all else here. */
const HELD_FOR = 20
/** Seconds, on a busy machine too. */
const IN_TIME = HELD_FOR - 5

/** Keeps a directory locked, against lookups too, for a while. */
async function holdForAWhile(holder: string, path: string): Promise<void> {
  const kill = `timeout --foreground -s KILL ${HELD_FOR}`
  const script = `${kill} "$0" "$1" & sleep 0.5; ${kill} mkdir "$1/written" & sleep 0.5; echo held; wait`
  const child: ChildProcess = spawn('sh', ['-c', script, holder, path], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = new Promise((done) => child.once('exit', done))
  onTestFinished(async () => {
    // Its group: the kernel lets a directory be unmounted once all of them have ended.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
    await setTimeout(500)
  })
  await new Promise<void>((done) => child.stdout?.on('data', (text) => String(text).includes('held\n') && done()))
}

async function inTime<T>(work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await work()
  expect((performance.now() - began) / 1000).toBeLessThan(IN_TIME)
  return result
}

describe.skipIf(!isRoot)(`a directory that is replaced after its lookup, and kept locked${suiteTitle}`, () => {
  let holder: string
  let stage: Stage
  let source: string
  beforeEach((context) => {
    holder = compileHolder(context)
    stage = kernelStage('ext4')
    onTestFinished(() => stage.close())
    source = `${stage.top}/volumes/shop/data`
    fs.mkdirSync(source, { recursive: true })
  })

  /** This node. A user of the directory exchanges it between the answer of the process that looks a path up and the open. */
  function sessionOf(directory: string) {
    let isExchanged = false
    const { host } = stage
    const lookUp: Host['daemons']['lookUp'] = async (...args) => {
      const answer = await host.daemons.lookUp(...args)
      if (isExchanged) return answer
      isExchanged = true
      fs.renameSync(directory, `${directory}.moved`)
      fs.mkdirSync(directory)
      await holdForAWhile(holder, directory)
      return answer
    }
    const answers: Host['daemons']['answers'] = async (...args) => (await lookUp(...args)) !== undefined
    const isolatesWalks = true as const
    return { ...stage.session(), host: { ...host, daemons: { ...host.daemons, lookUp, answers } }, isolatesWalks }
  }

  /** A cached name would be found without a lookup by another process. */
  function forget(): void {
    const shop = `${stage.top}/volumes/shop`
    fs.renameSync(shop, `${shop}.old`)
    fs.mkdirSync(shop)
    fs.renameSync(`${shop}.old/data`, `${shop}/other`)
    fs.rmdirSync(`${shop}.old`)
  }

  const missing = () => `${stage.top}/volumes/shop/data`

  it('does not block an open', async () => {
    forget()
    const lookups = createPathLookups(sessionOf(`${stage.top}/volumes/shop`))
    const found = await inTime(() => lookups.open(missing()).catch((error) => error.code))
    expect(found).toBeOneOf([undefined, 'ENOENT'])
  })

  it('does not block a command on a directory', async () => {
    forget()
    const open = () => openNodeDirectoryVolume(sessionOf(`${stage.top}/volumes/shop`), missing(), { set: 0, clear: 0 })
    expect(await inTime(() => open().catch((error) => error.message))).toMatch(/does not respond|does not exist/)
  })

  it('does not block a command that finds a volume by its records', async () => {
    await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    await stage.unmount('a')
    const [volume = ''] = fs.readdirSync(`${stage.config.stateDir}/ownership`)
    forget()
    const find = () => findVolumePath(sessionOf(`${stage.top}/volumes/shop`), volume)
    expect(await inTime(() => find().catch((error) => error.message))).toMatch(/does not respond|cannot be found/)
  })

  it('does not block a repair whose source was cached before', async () => {
    stage.config.helperTimeoutSeconds = 5
    await stage.mount('a', { source })
    execFileSync('umount', [stage.podDirectory('a')])
    fs.statSync(source)
    const [record = expect.unreachable()] = listReadableMountRecords(stage.session())
    const { host } = stage
    let isExchanged = false
    const isCached = (path: string) => {
      const answer = host.inodes.isCached(path)
      if (isExchanged || path !== source) return answer
      isExchanged = true
      const directory = `${stage.top}/volumes/shop`
      fs.renameSync(directory, `${directory}.moved`)
      fs.mkdirSync(directory)
      void holdForAWhile(holder, directory)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500)
      return answer
    }
    const session = {
      ...stage.session(),
      host: { ...host, inodes: { ...host.inodes, isCached } },
      isolatesWalks: true as const,
    }
    const healed = await inTime(() => healMount(session, record, 'missing', async () => false))
    expect([isExchanged, healed]).toEqual([true, expect.objectContaining({ state: 'unknown' })])
  })
})

/** What is mounted on sysfs, whose names no cache tells. */
const onSysfs = () => ['/sys/fs/cgroup', '/sys/fs/bpf', '/sys/kernel/debug'].filter((path) => fs.existsSync(path))

it('a missing path, one with a link, and one through a file fail with the error of a plain open', async () => {
  const top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-lookups-')))
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  fs.mkdirSync(`${top}/a`)
  fs.writeFileSync(`${top}/file`, '')
  fs.symlinkSync('a', `${top}/link`)
  const codeOf = async (open: () => unknown) => {
    try {
      const handle = (await open()) as Parameters<typeof linuxHost.inodes.close>[0] | undefined
      if (handle === undefined) return 'silent'
      linuxHost.inodes.close(handle)
      return ''
    } catch (error) {
      return (error as NodeJS.ErrnoException).code
    }
  }
  const lookups = createPathLookups({ host: linuxHost, isolatesWalks: true })
  const paths = ['a', 'none', 'none/x', 'file', 'file/x', 'link', 'link/x'].map((name) => `${top}/${name}`)
  for (const path of [
    ...paths,
    '/dev/shm',
    '/dev/none',
    '/sys/kernel',
    ...onSysfs(),
    '/proc/sys/kernel',
    '/sys/none',
  ]) {
    expect([path, await codeOf(() => lookups.open(path))]).toEqual([
      path,
      await codeOf(() => linuxHost.inodes.openLinkFree(path)),
    ])
  }
})

describe.skipIf(!isRoot)(`a path that the kernel does not resolve from its cache${suiteTitle}`, () => {
  /** Opens a path and counts the lookups of other processes. */
  async function openCounting(path: string, host: Host = linuxHost) {
    let lookups = 0
    const lookUp: Host['daemons']['lookUp'] = (...args) => {
      lookups++
      return host.daemons.lookUp(...args)
    }
    const counting = { ...host, daemons: { ...host.daemons, lookUp } }
    const handle = await createPathLookups({ host: counting, isolatesWalks: true }).open(path)
    if (handle !== undefined) host.inodes.close(handle)
    return { result: handle === undefined ? 'silent' : 'opened', lookups }
  }

  it('is opened after one lookup, also if a disk is mounted below such a file system', async () => {
    const top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-lookups-')))
    onTestFinished(() => fs.rmSync(top, { recursive: true }))
    execFileSync('mount', ['-t', 'sysfs', 'none', top])
    onTestFinished(() => void execFileSync('umount', ['-R', top]))
    execFileSync('mount', ['-t', 'tmpfs', 'none', `${top}/fs`])
    fs.mkdirSync(`${top}/fs/data`)
    const opened = { result: 'opened', lookups: 1 }
    expect([await openCounting(`${top}/kernel`), await openCounting(`${top}/fs/data`)]).toEqual([opened, opened])
  })

  /** A node whose root is an overlay. @param isCached whether the cache has `/tmp` after a lookup */
  function overlayNode(isCached: boolean, lookUp = linuxHost.daemons.lookUp): Host {
    const openLinkFree = (path: string) => {
      throw Object.assign(new Error(path), { code: 'EAGAIN' })
    }
    const { daemons, inodes, mounts } = linuxHost
    return {
      ...linuxHost,
      daemons: { ...daemons, lookUp },
      inodes: {
        ...inodes,
        cachedOpens: { ...inodes.cachedOpens, openLinkFree },
        isCached: (path) => path === '/' || isCached,
      },
      mounts: { ...mounts, table: () => '21 1 0:19 / / rw,relatime shared:1 - overlay overlay rw\n' },
    }
  }

  it('is opened on an overlay whose layers do not cache names, and not on one whose layers do', async () => {
    expect((await openCounting('/tmp', overlayNode(false))).result).toBe('opened')
    expect((await openCounting('/tmp', overlayNode(true))).result).toBe('silent')
  })

  it('is opened on a node without a program for the lookup', async () => {
    expect(
      (
        await openCounting(
          '/tmp',
          overlayNode(true, async () => 'not asked'),
        )
      ).result,
    ).toBe('opened')
  })
})
