import { spawn, spawnSync } from 'node:child_process'
import { onTestFinished, type TestContext } from 'vitest'
import { compile } from '../race/compile.ts'
import { expectInTime } from './busy-machine.ts'

/** Milliseconds after which a directory is released in any case, so that a call that waits for it ends and its test fails. */
const LONGEST_HOLD_MS = 60_000

/** Compiles the program that keeps a directory locked. Skips the test where the kernel does not let it. */
export function compileHolder(context: TestContext): string {
  const holder = compile('attacks/held-directory.c')
  context.skip(spawnSync(holder).status !== 0, 'needs userfaultfd(2)')
  return holder
}

/**
 * Keeps a directory locked against changes.
 * @returns ends the process that does
 */
export async function lockDirectory(holder: string, path: string): Promise<() => Promise<unknown>> {
  const child = spawn(holder, [path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_HOLD_MS)
  onTestFinished(() => {
    clearTimeout(timer)
    child.kill('SIGKILL')
  })
  await new Promise((done) => child.stdout.once('data', done))
  await new Promise((done) => setTimeout(done, 200))
  return () => {
    clearTimeout(timer)
    child.kill('SIGKILL')
    return new Promise((done) => child.once('exit', done))
  }
}

/** The same against lookups too: while a change waits for the lock, the kernel lets no lookup in that it has not cached. */
export async function lockDirectoryWithWriter(holder: string, path: string): Promise<() => Promise<unknown>> {
  const release = await lockDirectory(holder, path)
  const writer = spawn('mkdir', [`${path}/written`], { stdio: 'ignore' })
  const ended = new Promise((done) => writer.once('exit', done))
  onTestFinished(() => void writer.kill('SIGKILL'))
  await new Promise((done) => setTimeout(done, 500))
  return async () => {
    await release()
    await ended
  }
}

/** @param seconds that the work may take at most on an idle machine */
export async function finishWithin<T>(seconds: number, work: () => T | Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await work()
  expectInTime(performance.now() - began, seconds * 1000)
  return result
}
