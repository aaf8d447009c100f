import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ProcessWatch } from '../../src/kernel/linux/watches.ts'

describe('the watch of a process', () => {
  /** A watch, and the promise of its next telling. */
  function watch() {
    const waiting: (() => void)[] = []
    let tellings = 0
    const watching = new ProcessWatch(() => {
      tellings++
      for (const done of waiting.splice(0)) done()
    })
    onTestFinished(() => watching.close())
    return {
      watching,
      told: () => new Promise<void>((done) => waiting.push(done)),
      count: () => tellings,
    }
  }

  function process(): ChildProcess & { pid: number } {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    if (child.pid === undefined) throw new Error('no process could be started')
    return child as ChildProcess & { pid: number }
  }

  async function end(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  it('reports its end more than once, as its threads may end later', async () => {
    const { watching, told } = watch()
    const child = process()
    watching.follow([child.pid])
    await end(child)
    for (let tellings = 0; tellings < 3; tellings++) await told()
  })

  it('reports an end that came before the watch', async () => {
    const { watching, told } = watch()
    const child = process()
    await end(child)
    watching.follow([child.pid])
    await told()
  })

  it('reports the end of a process that is no longer listed', async () => {
    const { watching, told } = watch()
    const child = process()
    watching.follow([child.pid])
    await end(child)
    watching.follow([])
    await told()
  })

  it('reports the ends of one process after another', async () => {
    const { watching, told, count } = watch()
    const [first, second] = [process(), process()]
    watching.follow([first.pid, second.pid])
    await end(first)
    for (let tellings = 0; tellings < 3; tellings++) await told()
    expect(count()).toBe(3)
    await end(second)
    await told()
  })

  it('reports nothing after it is closed', async () => {
    const { watching, count } = watch()
    const other = watch()
    const child = process()
    watching.follow([child.pid])
    other.watching.follow([child.pid])
    watching.close()
    await end(child)
    await other.told()
    expect(count()).toBe(0)
  })
})
