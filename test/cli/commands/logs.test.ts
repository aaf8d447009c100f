import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createPodLogFilter, readNodeLog } from '../../../src/cli/commands/logs.ts'
import { appendLogLine } from '../../../src/log/log-file.ts'

const DIRECTORY = '/var/lib/kubelet/pods/11-22/volumes/modekeep~fs/v'
const mount = JSON.stringify({ verb: 'mount', directory: DIRECTORY, pod: 'shop/cart' })
const unmount = JSON.stringify({ verb: 'unmount', directory: DIRECTORY, error: 'no' })
const other = JSON.stringify({ verb: 'mount', directory: '/pods/33/volumes/v', pod: 'shop/other' })

describe('a line of the log', () => {
  it('matches a pod by its UID', () => {
    const isAbout = createPodLogFilter('11-22')
    expect([mount, unmount, other].map(isAbout)).toEqual([true, true, false])
  })

  it('matches a pod by its name, also if the call had no name', () => {
    const isAbout = createPodLogFilter('shop/cart')
    expect([mount, unmount, other].map(isAbout)).toEqual([true, true, false])
  })
})

describe('the logs command', () => {
  let top: string
  let file: string
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-logs-`)
    file = `${top}/log`
  })
  afterEach(() => fs.rmSync(top, { recursive: true }))

  /** What is shown until there are so many lines. */
  async function shown(
    more: Partial<Parameters<typeof readNodeLog>[1]>,
    most = Number.POSITIVE_INFINITY,
    told: (line: string) => void = () => {},
  ) {
    const lines: string[] = []
    await readNodeLog(
      fs,
      { verb: 'logs', isFollowing: false, last: undefined, pod: undefined, ...more },
      file,
      (raw) => {
        lines.push(raw)
        told(raw)
        return lines.length < most
      },
    )
    return lines
  }

  it('is refused if there is no log', async () => {
    await expect(shown({})).rejects.toThrow('there is no log')
  })

  it('prints the lines of a pod, or the last N lines', async () => {
    for (const line of [mount, other, unmount, other]) appendLogLine(fs, file, line)
    expect(await shown({ pod: '11-22' })).toEqual([mount, unmount])
    expect(await shown({ last: 1 })).toEqual([other])
    expect(await shown({ last: 0 })).toEqual([])
    expect(await shown({ pod: 'shop/cart', last: 1 })).toEqual([unmount])
  })

  it('prints the lines of the last hour, the lines of failed calls, or the last N of these lines', async () => {
    const at = (minutes: number, outcome: string) =>
      JSON.stringify({ time: new Date(Date.now() - minutes * 60_000).toISOString(), verb: 'mount', outcome })
    const [old, failed, done, again] = [at(61, 'Failure'), at(59, 'Failure'), at(30, 'Success'), at(1, 'Failure')]
    for (const line of [old, failed, 'no JSON', done, again]) appendLogLine(fs, file, line)
    expect(await shown({ age: 3_600_000 })).toEqual([failed, done, again])
    expect(await shown({ isFailed: true })).toEqual([old, failed, again])
    expect(await shown({ age: 3_600_000, isFailed: true, last: 1 })).toEqual([again])
  })

  it('prints the last N of very many lines without keeping all lines in memory', async () => {
    for (let n = 0; n < 3000; n++) appendLogLine(fs, file, `line ${n}`)
    expect(await shown({ last: 2 })).toEqual(['line 2998', 'line 2999'])
  })

  it('follows new lines through a rotation until the reader closes the stream', async () => {
    appendLogLine(fs, file, 'one')
    const next: Record<string, string> = { one: 'two', two: 'three' }
    const more = (line: string) => next[line] && appendLogLine(fs, file, next[line], 1)
    expect(await shown({ isFollowing: true, last: 10 }, 3, more)).toEqual(['one', 'two', 'three'])
  })
})
