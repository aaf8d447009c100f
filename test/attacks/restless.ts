import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { compile } from '../race/compile.ts'

/** A process that changes a tree as fast as it can, until it is stopped. */
export interface Restless extends AsyncDisposable {
  /** Lets it go on: it waits for the walk. */
  resume(): void
  /** False: it has come to an end, and the walk was not attacked. */
  isAtIt(): boolean
}

/** @param mode see restless.c, or the other program @returns when it has begun; it is stopped then */
export async function startRestless(mode: string, directory: string, program = 'restless'): Promise<Restless> {
  const child = spawn(compile(`attacks/${program}.c`), [mode, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  onTestFinished(() => void child.kill('SIGKILL'))
  await Promise.race([new Promise((begun) => child.stdout.once('data', begun)), ended])
  child.kill('SIGSTOP')
  return {
    resume: () => void child.kill('SIGCONT'),
    isAtIt: () => child.exitCode === null && child.signalCode === null,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** What a walk took, and what it said where it gave up. */
export interface Attacked {
  seconds: number
  /** What RSS grew by at most, with garbage and all; bytes. */
  memory: number
  handles: number
  refusal: string | undefined
}

const EACH_MS = 50

/** @throws every error except a refusal */
export async function attacked(walk: () => Promise<unknown>): Promise<Attacked> {
  const most = { memory: 0, handles: 0 }
  const before = process.memoryUsage.rss()
  const look = () => {
    most.memory = Math.max(most.memory, process.memoryUsage.rss() - before)
    most.handles = Math.max(most.handles, fs.readdirSync('/proc/self/fd').length)
  }
  const timer = setInterval(look, EACH_MS)
  const begun = performance.now()
  try {
    const refusal = await walk().then(
      () => undefined,
      (error) => {
        if (error instanceof Refusal) return error.message
        throw error
      },
    )
    look()
    return { seconds: (performance.now() - begun) / 1000, ...most, refusal }
  } finally {
    clearInterval(timer)
  }
}
