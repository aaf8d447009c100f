import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'

const ON_NODE = resolve(import.meta.dirname, '../../driver/kubernetes/image/on-node')

/** Runs on-node with a program in modekeep's place. */
function start(program: string) {
  const directory = fs.mkdtempSync(join(tmpdir(), 'modekeep-on-node-'))
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }))
  fs.writeFileSync(join(directory, 'modekeep'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
  const env = { PATH: `${directory}:${process.env.PATH}` }
  const child = spawn(ON_NODE, ['heal', '--watch'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  const ended = once(child, 'close').then(([code]) => ({ code, text }))
  return { child, ended, said: (words: string) => expect.poll(() => text, { timeout: 600_000 }).toContain(words) }
}

describe("the container's first process", () => {
  it('passes its arguments to modekeep, and exits when modekeep exits, with the same status', async () => {
    expect(await start('echo "$@"; exit 7').ended).toEqual({ code: 7, text: 'heal --watch\n' })
  })

  it('forwards SIGTERM, and waits for running work', async () => {
    const { child, ended, said } = start(
      'trap "echo told; sleep 0.5; echo done; exit 0" TERM; echo runs; while :; do sleep 0.1; done',
    )
    await said('runs')
    child.kill('SIGTERM')
    expect(await ended).toEqual({ code: 0, text: 'runs\ntold\ndone\n' })
  })

  it('ends when modekeep is killed', async () => {
    const { code } = await start('kill -KILL $$').ended
    expect(code).toBe(137)
  })
})
