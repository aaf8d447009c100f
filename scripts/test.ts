import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { runConfined } from '../test/helpers/own-namespaces.ts'
import { RESULTS_FILE } from '../test/helpers/results.ts'
import { printTally, readTally, sumTallies, TALLY_FILE, type Tally } from '../test/helpers/tally.ts'
import { installPackages } from './test/install.ts'
import { LaterOutput } from './test/later-output.ts'
import { Preparation } from './test/preparation.ts'
import { otherTests, sizedTests, unitTests } from './test/selection.ts'

// Without arguments what a change is held by, with --long what takes longer, with --unit what needs no root and no build;
// with other arguments only what they name of vitest's tests; with --results FILE before them, FILE says how they ended.
const root = resolve(import.meta.dirname, '..')
const node = process.execPath
const bin = `${root}/node_modules/.bin`
const args = process.argv.slice(2)
const isRoot = process.getuid?.() === 0
process.chdir(root)
process.env.PATH = `${dirname(node)}:${bin}:${process.env.PATH}`

// What tests make is below this directory, which goes with the run; their users must reach it.
const place = fs.mkdtempSync(`${tmpdir()}/modekeep-`)
fs.chmodSync(place, 0o755)
process.env.TMPDIR = place

// Every mount of a test is made in a mount namespace of the run, so nothing is left on the machine, however it ends.
const OWN_MOUNTS = isRoot ? ['unshare', '--mount', '--propagation', 'private'] : []
const vitest = (...rest: string[]) => [...OWN_MOUNTS, node, `${root}/node_modules/vitest/vitest.mjs`, ...rest]
const kubelet = (...rest: string[]) => [node, 'test/kubelet/main.ts', ...rest]
// Half of the time goes into loading the same modules for each file; these tests need no process of their own. A
// process for each CPU would be idle while it waits, and each further one loads the modules once more.
const UNISOLATED = ['--no-isolate', `--maxWorkers=${availableParallelism() + 2}`]
const NEEDS_ROOT = 'Not root: what needs real mounts is skipped. "sudo npm test" runs everything.'

async function everything(): Promise<number> {
  check('format and lint', `${bin}/biome`, 'check', '.')
  check('types', `${bin}/tsc`, '--noEmit')
  const others = otherTests()
  const parts: Part[] = [['unit', vitest('run', ...UNISOLATED, ...unitTests())]]
  if (isRoot) parts.push(['vitest', vitest('run', ...others)])
  else {
    // Without root no test makes a mount, so files can share a process, but for those with a cache of their own.
    const isFetching = (file: string) => file.startsWith('test/fetch/')
    parts.push(['vitest', vitest('run', ...UNISOLATED, ...others.filter((file) => !isFetching(file)))])
    parts.push(['fetch', vitest('run', ...others.filter(isFetching))])
  }
  return withAll(parts, [[['kubelet', kubelet('--small')]]], 'test/kubelet/provide.ts')
}

async function long(): Promise<number> {
  process.env.MODEKEEP_TEST_SIZE ??= 'long'
  const parts: Part[] = [['vitest', vitest('run', ...sizedTests())]]
  const cluster: Part = ['cluster', [node, 'test/cluster/main.ts']]
  const others: Part[] = [
    ['kubelet', kubelet()],
    ['nri', [node, 'test/runtimes/main.ts']],
    ['e2e', [node, 'test/e2e/main.ts', '--quick']],
  ]
  // The cluster takes longer than all others.
  return withAll(parts, [[cluster], others], 'test/e2e/provide.ts')
}

/** What each part took, so that the end of a long output tells where the time of the run went. */
const durations: string[] = []

type Part = [name: string, command: string[]]

/**
 * Runs vitest's parts. Meanwhile a script fetches and builds the programs of the nodes, then the nodes' parts begin. These
 * mostly wait for pods, and their output is printed when vitest's has ended.
 * @param lanes parts of nodes, which run concurrently with those of the other lanes
 */
async function withAll(parts: readonly Part[], lanes: readonly Part[][], provide: string): Promise<number> {
  await installPackages(isRoot)
  if (!isRoot) console.log(NEEDS_ROOT)
  const prepared = isRoot ? new Preparation(node, `${root}/${provide}`) : undefined
  const output = new LaterOutput()
  let isEnding = false
  const own = runOwn()
  const ended = await Promise.allSettled([own, ...lanes.map(runLane)])
  const failure = ended.find((one) => one.status === 'rejected')
  if (failure) throw failure.reason
  const total = sumTallies(ended.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])))
  console.log(`\n${durations.join(', ')}`)
  printTally(total)
  return total.failed > 0 ? 1 : 0

  async function runOwn(): Promise<Tally[]> {
    const tallies: Tally[] = []
    try {
      for (const [name, command] of parts) tallies.push(await part(name, command, 'SIGKILL'))
    } catch (error) {
      isEnding = true
      prepared?.stop()
      throw error
    } finally {
      output.release()
    }
    return tallies
  }

  async function runLane(lane: readonly Part[], at: number): Promise<Tally[]> {
    const said = await prepared?.done()
    if (said && at === 0) output.print(`\n${said}`)
    const tallies: Tally[] = []
    for (const [name, command] of lane) {
      if (!isRoot) tallies.push(withoutKubelet(name))
      else if (!isEnding)
        tallies.push(await part(name, command, 'SIGTERM', (line) => output.print(`${name.padEnd(8)}${line}`)))
    }
    return tallies
  }
}

function check(what: string, command: string, ...rest: string[]): void {
  console.log(`Checking ${what} …`)
  const { error, status } = spawnSync(command, rest, { stdio: 'inherit' })
  if (error) throw error
  if (status !== 0) throw new Ended(status ?? 1)
}

/** @param print gets each line of the output; undefined: the output is this process's */
async function part(
  name: string,
  command: string[],
  end: 'SIGKILL' | 'SIGTERM',
  print?: (line: string) => void,
): Promise<Tally> {
  const file = `${place}/${name}`
  const startedMs = performance.now()
  const status = await runConfined(command, { ...process.env, [TALLY_FILE]: file }, end, print)
  durations.push(`${name} ${Math.round((performance.now() - startedMs) / 1000)} s`)
  if (status === INTERRUPTED) throw new Ended(status)
  return readTally(name, file, status)
}

function withoutKubelet(name: string): Tally {
  console.log(`\nskipped 1: pods of a real ${name} (skipped: they need root; run "sudo npm test")`)
  return { passed: 0, failed: 0, skipped: 1, failures: [] }
}

const INTERRUPTED = 130

class Ended extends Error {
  readonly status: number

  constructor(status: number) {
    super()
    this.status = status
  }
}

function leave(status: number): never {
  fs.rmSync(place, { recursive: true, force: true })
  process.exit(status)
}

async function named(...rest: string[]): Promise<number> {
  const isWatching = rest.includes('--watch')
  return runConfined(vitest(...(isWatching ? [] : ['run']), ...rest), process.env)
}

function run(): Promise<number> {
  const [mode, ...rest] = args
  if (mode === undefined) return everything()
  if (mode === '--long' && rest.length === 0) return long()
  if (mode === '--unit') {
    process.env.MODEKEEP_TEST_SIZE = 'unit'
    return named(...UNISOLATED, ...unitTests(), ...rest)
  }
  if (!isRoot) console.log(NEEDS_ROOT)
  if (mode !== '--results') return named(...args)
  const [file, ...tests] = rest
  if (file === undefined || tests.length === 0) throw new Error('--results FILE TEST...: name the tests too')
  process.env[RESULTS_FILE] = resolve(file)
  return named(...tests)
}

run().then(
  (status) => leave(status),
  (error) => {
    if (!(error instanceof Ended)) console.error(error instanceof Error ? error.message : error)
    leave(error instanceof Ended ? error.status : 1)
  },
)
