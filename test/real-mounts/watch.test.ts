import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../helpers/atomic-writer.ts'
import { isRoot } from '../helpers/stage.ts'

const PROCESS = resolve(import.meta.dirname, 'watch-process.ts')
const suiteTitle = isRoot
  ? 'a watch of the node'
  : 'a watch of the node (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(suiteTitle, () => {
  let top: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-watch-`)
    onTestFinished(() => fs.rmSync(top, { recursive: true }))
  })

  /** In a mount namespace of its own: the mounts of other tests are none of its changes. */
  function start(args: readonly string[], limit?: string) {
    const node = [process.execPath, PROCESS, ...args]
    const limited = [
      'unshare',
      '--user',
      '--map-root-user',
      'sh',
      '-c',
      `echo 0 > /proc/sys/user/${limit}; exec "$@"`,
      'sh',
    ]
    const command = ['--mount', '--propagation', 'private', ...(limit ? limited : []), ...node]
    const child = spawn('unshare', command)
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    const closed = once(child, 'close')
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        text += data
      })
    }
    const count = () => text.match(/^heal /gm)?.length ?? 0
    return {
      text: () => text,
      count,
      async heals(atLeast: number) {
        while (count() < atLeast) await more()
      },
      async says(what: RegExp) {
        while (!what.test(text)) await more()
      },
      /** A command in its mount namespace. */
      run: (...command: string[]) => execFileSync('nsenter', ['-t', `${child.pid}`, '-m', ...command]),
      async end(signal?: NodeJS.Signals) {
        if (signal) child.kill(signal)
        const [code, by] = await closed
        return { code, by }
      },
    }
    async function more() {
      const ended = closed.then(() => Promise.reject(new Error(`it ended: ${text}`)))
      await Promise.race([once(child.stdout, 'data'), ended])
    }
  }

  it('heals after a mount, an unmount and a changed mount, and not without a change', async () => {
    const watch = start(['plain'])
    await watch.heals(1)
    let heals = 1
    for (const command of [
      ['mount', '-t', 'tmpfs', 'test', top],
      ['mount', '-o', 'remount,bind,ro', top],
      ['umount', top],
    ]) {
      watch.run(...command)
      await watch.heals(++heals)
    }
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
    expect(watch.text()).toBe(`${Array.from({ length: heals }, (_, n) => `heal ${n + 1} \n`).join('')}ended\n`)
  })

  it('heals after an atomic update of a volume', async () => {
    write(top, { config: 'one' })
    const watch = start(['plain', top])
    // The second, since the directory was not watched before.
    await watch.heals(2)
    write(top, { config: 'two' })
    await watch.heals(3)
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })

  it('heals after changes in a directory that is created, deleted and created again', async () => {
    const directory = `${top}/source`
    const watch = start(['plain', top, directory])
    await watch.says(/ none\n/)
    for (let round = 0; round < 3; round++) {
      fs.mkdirSync(directory)
      const { birthtimeNs } = fs.statSync(directory, { bigint: true })
      await watch.says(new RegExp(` ${birthtimeNs}:0\\n`))
      // Between two heals that saw it a watch of it has begun; the second may need a reason.
      fs.writeFileSync(`${top}/reason${round}`, '')
      await watch.says(new RegExp(` ${birthtimeNs}:0\\n.* ${birthtimeNs}:0\\n`))
      fs.writeFileSync(`${directory}/inside`, '')
      await watch.says(new RegExp(` ${birthtimeNs}:1\\n`))
      fs.rmSync(directory, { recursive: true })
      await watch.says(new RegExp(` ${birthtimeNs}:1\\n[^]* none\\n`))
    }
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends by %s with status 0 while a thread is blocked', async (signal) => {
    const watch = start(['plain', top])
    await watch.heals(2)
    expect(await watch.end(signal)).toEqual({ code: 0, by: null })
    expect(watch.text()).toMatch(/\nended\n$/)
  })

  it('does not keep the process of heal --watch alive after all other work has ended', async () => {
    const watch = start(['exit', top])
    expect(await watch.end()).toEqual({ code: 7, by: null })
  })

  it('continues after a failed heal', async () => {
    const watch = start(['fail'])
    await watch.heals(1)
    watch.run('mount', '-t', 'tmpfs', 'test', top)
    await watch.heals(2)
    expect(watch.text()).toContain('failed Error: no luck\n')
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })

  it.each([
    ['max_inotify_watches', /^warn cannot watch directories \(ENOSPC.*max_user_watches/gm],
    ['max_inotify_instances', /^warn cannot watch directories \(EMFILE.*max_user_instances/gm],
  ])('reports once that %s is reached, and continues to react to mounts', async (limit, said) => {
    const others = ['a', 'b', 'c'].map((name) => `${top}/${name}`)
    for (const path of others) fs.mkdirSync(path)
    const watch = start(['plain', ...others], limit)
    // Before the mount hides the directories.
    await watch.says(/^warn /m)
    watch.run('mount', '-t', 'tmpfs', 'test', top)
    await watch.heals(2)
    expect(watch.text().match(said), watch.text()).toHaveLength(1)
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })
})
