import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY, type BinaryNode } from './kubelet-call.ts'
import { type KillPoint, type TracedCall, tracedCalls } from './strace-text.ts'

/** Why nothing can be injected here, empty where it can. */
export const cannotInject = (() => {
  if (process.getuid?.() !== 0) return 'mounts need root; run "sudo npm test"'
  return spawnSync('strace', ['-V']).error ? 'needs strace: apt-get install strace' : ''
})()

interface Ended {
  text: string
  signal: NodeJS.Signals | null
}

function underStrace(node: BinaryNode, options: readonly string[], args: readonly string[]): Promise<Ended> {
  const child = spawn('strace', ['-f', ...options, BINARY, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` },
  })
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', (_, signal) => done({ text, signal }))
  })
}

/**
 * Every system call of one run, in order.
 * @param fast only the named calls stop the process; the names must be known to strace
 * @throws {Error} when the call does not answer Success
 */
export async function trace(node: BinaryNode, args: readonly string[], fast?: string): Promise<TracedCall[]> {
  const file = `${node.top}/trace`
  const only = fast === undefined ? [] : ['--seccomp-bpf', '-e', `trace=${fast}`]
  const { text } = await underStrace(node, ['-y', '-e', 'signal=none', ...only, '-o', file], args)
  if (!text.includes('"Success"')) throw new Error(`the traced run failed: ${text}`)
  const calls = tracedCalls(fs.readFileSync(file, 'utf8'))
  fs.rmSync(file)
  return calls
}

/**
 * SIGKILL in place of the `when`-th call of that name in a thread: a fatal signal at the entry of a system call keeps the
 * kernel from doing it. Not with --seccomp-bpf, whose stop drops the signal (seen with strace 6.1).
 * @returns whether the process got there; otherwise it has ended by itself
 */
export async function killAt(node: BinaryNode, args: readonly string[], { name, when }: KillPoint): Promise<boolean> {
  const inject = ['-e', `trace=${name}`, '-e', `inject=${name}:signal=KILL:when=${when}`]
  const { signal } = await underStrace(node, [...inject, '-o', '/dev/null'], args)
  return signal === 'SIGKILL'
}

export interface Matrix {
  args: readonly string[]
  /** Makes the node as it is before the call, the same each time. */
  prepare(): Promise<void>
  /** Of the calls of a good run, those to be killed at. */
  choose(calls: TracedCall[]): KillPoint[]
  /** What must hold after the death, and what the next calls make of it. */
  check(point: KillPoint, index: number): Promise<void>
}

/** The same call of two threads is one place: strace kills the thread that comes first. */
function distinct(points: readonly KillPoint[]): KillPoint[] {
  return [...new Map(points.map((point) => [`${point.name} ${point.when}`, point])).values()]
}

/**
 * Some runs have a call more or less than others: malloc reads the number of CPUs when two threads meet in it, and a walk
 * that takes over a second tells how far it is.
 */
async function steadyPoints(node: BinaryNode, matrix: Matrix): Promise<KillPoint[]> {
  const places = (points: readonly KillPoint[]) => points.map(({ name, when }) => `${name} ${when}`).join()
  const seen = new Set<string>()
  for (let tries = 0; tries < 20; tries++) {
    await matrix.prepare()
    const points = distinct(matrix.choose(await trace(node, matrix.args)))
    if (points.length > 0 && seen.has(places(points))) return points
    seen.add(places(points))
  }
  throw new Error('no two runs of the call make the same system calls')
}

/** Kills a call at each of the points in turn. A check that fails says at which; `missed` are those never reached. */
export async function killAtEach(node: BinaryNode, matrix: Matrix): Promise<{ tried: number; missed: string[] }> {
  const points = await steadyPoints(node, matrix)
  const missed: string[] = []
  for (const [index, point] of points.entries()) {
    const what = `${point.name} ${point.when}, in place of: ${point.text}`
    let died = false
    for (let tries = 0; !died && tries < 3; tries++) {
      await matrix.prepare()
      // A run that ends by itself had a call fewer than the traced one.
      died = await killAt(node, matrix.args, { ...point, when: point.when - tries })
    }
    if (!died) missed.push(what)
    try {
      await matrix.check(point, index)
    } catch (error) {
      throw new Error(`killed at ${what}`, { cause: error })
    }
  }
  return { tried: points.length, missed }
}
