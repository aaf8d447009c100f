import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../helpers/atomic-writer.ts'
import { isRoot } from '../helpers/stage.ts'

const PROCESS = resolve(import.meta.dirname, 'watch-process.ts')
const title = isRoot ? 'a watch of the node' : 'a watch of the node (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(title, () => {
  let top: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-watch-`)
    onTestFinished(() => fs.rmSync(top, { recursive: true }))
  })

  /** In a mount namespace of its own: the mounts of other tests are none of its changes. */
  function start(args: readonly string[], before = ':') {
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', PROCESS, ...args]
    const child = spawn('unshare', [
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      `${before}; exec "$@"`,
      'sh',
      ...node,
    ])
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
        while (count() < atLeast) await Promise.race([once(child.stdout, 'data'), ended()])
      },
      /** A command in its mount namespace. */
      run: (...command: string[]) => execFileSync('nsenter', ['-t', `${child.pid}`, '-m', ...command]),
      async end(signal?: NodeJS.Signals) {
        if (signal) child.kill(signal)
        const [code, by] = await closed
        return { code, by }
      },
    }
    async function ended() {
      await closed
      throw new Error(`it ended: ${text}`)
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
    expect(watch.text()).toBe(`${Array.from({ length: heals }, (_, n) => `heal ${n + 1}\n`).join('')}ended\n`)
  })

  it('heals after a volume flips', async () => {
    write(top, { config: 'one' })
    const watch = start(['plain', top])
    // The second, since the directory was not watched before.
    await watch.heals(2)
    write(top, { config: 'two' })
    await watch.heals(3)
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })

  it('heals after a directory is made, deleted and made again', async () => {
    const directory = `${top}/source`
    const watch = start(['plain', top, directory])
    await watch.heals(2)
    for (let round = 0; round < 3; round++) {
      let heals = watch.count()
      fs.mkdirSync(directory)
      // Once for its parent, once more since it is watched from then on.
      await watch.heals(heals + 2)
      heals = watch.count()
      fs.writeFileSync(`${directory}/inside`, '')
      await watch.heals(heals + 1)
      heals = watch.count()
      fs.rmSync(directory, { recursive: true })
      await watch.heals(heals + 1)
    }
    expect(await watch.end('SIGTERM')).toEqual({ code: 0, by: null })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('ends by %s with status 0, though a thread is blocked', async (signal) => {
    const watch = start(['plain', top])
    await watch.heals(2)
    expect(await watch.end(signal)).toEqual({ code: 0, by: null })
    expect(watch.text()).toMatch(/\nended\n$/)
  })

  it('does not hinder its process from ending otherwise', async () => {
    const watch = start(['exit', top])
    expect(await watch.end()).toEqual({ code: 7, by: null })
  })

  it('goes on after a heal that failed', async () => {
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
  ])('says once that %s is reached, and goes on hearing of mounts', async (limit, said) => {
    const others = ['a', 'b', 'c'].map((name) => `${top}/${name}`)
    for (const path of others) fs.mkdirSync(path)
    const watch = start(
      ['plain', ...others],
      `echo 0 > /proc/sys/user/${limit}`.replace(/^/, "exec unshare -Umr sh -c '"),
    )
    await watch.heals(1)
    expect(watch.text().match(said)).toHaveLength(1)
  })
})
