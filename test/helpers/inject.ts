import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { type Fault, KILL } from '../faults/fault.ts'
import { cannotMountWith } from './needs.ts'
import { BINARY, type NodeDirectory } from './node-directory.ts'
import { type KillPoint, parseTrace, type TracedCall } from './strace-text.ts'

/** Why nothing can be injected here, empty where it can. */
export const cannotInject = cannotMountWith('strace')

/** What is run under strace. */
export interface Program {
  argv: readonly string[]
  env: Record<string, string | undefined>
  /** Below it traces are written. */
  top: string
  /** What its stdin has; without it, nothing. */
  input?: string
}

export interface Ended {
  text: string
  errors: string
  code: number | null
  signal: NodeJS.Signals | null
  /** It was ended from here. */
  hung: boolean
}

const LONGEST = 120_000

/** Runs a program to its end, or for two minutes. */
export function runToEnd({ argv: [file = '', ...args], env, input }: Program): Promise<Ended> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env, detached: true })
  // Who is killed does not read to the end.
  child.stdin.on('error', () => {}).end(input)
  const ended = { text: '', errors: '', hung: false }
  child.stdout.on('data', (data) => {
    ended.text += data
  })
  child.stderr.on('data', (data) => {
    ended.errors += data
  })
  return new Promise((done, fail) => {
    const timer = setTimeout(() => {
      ended.hung = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }, LONGEST)
    child.on('error', fail)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      done({ ...ended, code, signal })
    })
  })
}

function underStrace(program: Program, options: readonly string[], file: string): Promise<Ended> {
  return runToEnd({ ...program, argv: ['strace', '-f', '-q', ...options, '-o', file, ...program.argv] })
}

/** A call of the built executable as kubelet makes it. */
export function modekeepOn(node: NodeDirectory, args: readonly string[], input = ''): Program {
  const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` }
  return { argv: [BINARY, ...args], env, top: node.top, input }
}

/**
 * Every system call of one run, in order.
 * @param fast only the named calls stop the process; the names must be known to strace
 */
export async function traceProgram(program: Program, fast?: string): Promise<{ ended: Ended; calls: TracedCall[] }> {
  const file = `${program.top}/trace`
  const only = fast === undefined ? [] : ['--seccomp-bpf', '-e', `trace=${fast}`]
  const ended = await underStrace(program, ['-y', '-e', 'signal=none', ...only], file)
  const calls = parseTrace(fs.readFileSync(file, 'utf8'))
  fs.rmSync(file)
  return { ended, calls }
}

/** The same for a call of the built executable, or a verb. @throws {Error} when it fails */
export async function traceModekeep(
  node: NodeDirectory,
  args: readonly string[],
  fast?: string,
): Promise<TracedCall[]> {
  const { ended, calls } = await traceProgram(modekeepOn(node, args), fast)
  if (ended.code !== 0 || ended.text.includes('"Failure"')) throw new Error(`the traced run failed: ${ended.text}`)
  return calls
}

/** Where a fault strikes. */
export interface FaultPoint extends KillPoint {
  /** Only calls about this path count. */
  path?: string | undefined
}

/**
 * Injects a fault at the `when`-th call of that name in a thread. A fatal signal at the entry of a system call keeps the
 * kernel from doing it; not with --seccomp-bpf, whose stop drops the signal (seen with strace 6.1).
 * @param also calls to be traced beside that one; the names must be known to strace
 */
export async function injectAt(program: Program, point: FaultPoint, fault: Fault, also = '') {
  const { name, when, path } = point
  const last = fault.lasts ? '+' : ''
  const how = fault.name === 'KILL' ? `signal=KILL:when=${when}` : `error=${fault.name}:when=${when}${last}`
  const quick = fault.name === 'KILL' || path !== undefined ? [] : ['--seccomp-bpf']
  const only = path === undefined ? [] : ['-P', path]
  const what = ['-y', '-e', `trace=${name}${also && `,${also}`}`, '-e', `inject=${name}:${how}`]
  const file = `${program.top}/trace`
  const ended = await underStrace(program, [...quick, ...only, ...what], file)
  const text = fs.readFileSync(file, 'utf8')
  fs.rmSync(file)
  const reached =
    fault.name === 'KILL' ? / killed by SIGKILL /.test(text) || ended.signal === 'SIGKILL' : text.includes('(INJECTED)')
  return { ended, reached, calls: parseTrace(text) }
}

/**
 * SIGKILL in place of a call.
 * @returns whether the call, or a process that works for it, got there; otherwise it has ended by itself
 */
export async function killAt(node: NodeDirectory, args: readonly string[], point: KillPoint): Promise<boolean> {
  const { name, when, text } = point
  return (await injectAt(modekeepOn(node, args), { name, when, text }, KILL)).reached
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
export function removeDuplicates<P extends KillPoint>(points: readonly P[]): P[] {
  return [...new Map(points.map((point) => [`${point.name} ${point.when}`, point])).values()]
}

/**
 * Some runs have a call more or less than others: malloc reads the number of CPUs when two threads meet in it, and a walk
 * that takes over a second tells how far it is.
 */
async function steadyPoints(node: NodeDirectory, matrix: Matrix): Promise<KillPoint[]> {
  const places = (points: readonly KillPoint[]) => points.map(({ name, when }) => `${name} ${when}`).join()
  const seen = new Set<string>()
  for (let tries = 0; tries < 20; tries++) {
    await matrix.prepare()
    const points = removeDuplicates(matrix.choose(await traceModekeep(node, matrix.args)))
    if (points.length > 0 && seen.has(places(points))) return points
    seen.add(places(points))
  }
  throw new Error('no two runs of the call make the same system calls')
}

/** Without what differs from run to run: numbers of handles, devices and processes. */
const withoutNumbers = ({ text }: KillPoint) => text.replace(/\d+/g, '')

/** Finds a point of an earlier run in this one: as many like it come before. */
function findSameCall(now: readonly KillPoint[], earlier: readonly KillPoint[], index: number): KillPoint | undefined {
  const wanted = withoutNumbers(earlier[index] as KillPoint)
  const isSame = (point: KillPoint) => withoutNumbers(point) === wanted
  return now.filter(isSame)[earlier.slice(0, index).filter(isSame).length]
}

/** Kills a call at each of the points in turn. A check that fails says at which; `missed` are those never reached. */
export async function killAtEach(node: NodeDirectory, matrix: Matrix): Promise<{ tried: number; missed: string[] }> {
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
    for (let tries = 0; !died && tries < 3; tries++) {
      // Or many fewer: another test has ended that had loop devices, each of which is asked.
      const now = findSameCall(await steadyPoints(node, matrix), points, index)
      await matrix.prepare()
      died = now !== undefined && (await killAt(node, matrix.args, now))
    }
    if (!died) missed.push(what)
    try {
      await matrix.check(point, index)
    } catch (error) {
      throw new Error(`killed at ${what}; then: ${(error as Error).message}`, { cause: error })
    }
  }
  return { tried: points.length, missed }
}
