import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { SEED_VARIABLE } from '../test/helpers/door-seed.ts'
import { runConfined } from '../test/helpers/own-namespaces.ts'
import { RESULTS_FILE } from '../test/helpers/results.ts'
import { printTally, readTally, sumTallies, TALLY_FILE, type Tally } from '../test/helpers/tally.ts'
import { drawDoorTests, isDoorTest, selectDoorTests, takeSeed } from './test/door.ts'
import { installTestPackages } from './test/install.ts'
import { DelayedOutput } from './test/later-output.ts'
import { BackgroundPreparation } from './test/preparation.ts'
import { selectOtherTests, selectSizedTests, selectUnitTests } from './test/selection.ts'

// Without arguments what a change is held by, with --long what takes longer, with --unit what needs no root and no build;
// with other arguments only what they name of vitest's tests; with --results FILE before them, FILE says how they ended.
// With --door a resident worker makes the FlexVolume calls of the named tests; --seed N draws another tenth of them for a
// run without arguments.
const projectRoot = resolve(import.meta.dirname, '..')
const nodePath = process.execPath
const binDirectory = `${projectRoot}/node_modules/.bin`
const testArguments = process.argv.slice(2)
const seed = takeSeed(testArguments)
if (seed !== undefined) process.env[SEED_VARIABLE] = seed
const isRoot = process.getuid?.() === 0
process.chdir(projectRoot)
process.env.PATH = `${dirname(nodePath)}:${binDirectory}:${process.env.PATH}`

// What tests make is below this directory, which goes with the run; their users must reach it.
const temporaryDirectory = fs.mkdtempSync(`${tmpdir()}/modekeep-`)
fs.chmodSync(temporaryDirectory, 0o755)
process.env.TMPDIR = temporaryDirectory

// Every mount of a test is made in a mount namespace of the run, so nothing is left on the machine, however it ends.
const OWN_MOUNT_NAMESPACE_COMMAND = isRoot ? ['unshare', '--mount', '--propagation', 'private'] : []
const createVitestCommand = (...rest: string[]) => [
  ...OWN_MOUNT_NAMESPACE_COMMAND,
  nodePath,
  `${projectRoot}/node_modules/vitest/vitest.mjs`,
  ...rest,
]
const createKubeletCommand = (...rest: string[]) => [nodePath, 'test/kubelet/main.ts', ...rest]
// Half of the time goes into loading the same modules for each file; these tests need no process of their own. A
// process for each CPU would be idle while it waits, and each further one loads the modules once more.
const UNISOLATED_OPTIONS = ['--no-isolate', `--maxWorkers=${availableParallelism() + 2}`]
const NEEDS_ROOT_MESSAGE = 'Not root: what needs real mounts is skipped. "sudo npm test" runs everything.'

async function runAllTests(): Promise<number> {
  runCheck('format and lint', `${binDirectory}/biome`, 'check', '.')
  runCheck('types', `${binDirectory}/tsc`, '--noEmit')
  const others = selectOtherTests()
  const parts: TestPart[] = [['unit', createVitestCommand('run', ...UNISOLATED_OPTIONS, ...selectUnitTests())]]
  if (isRoot) {
    const door = drawDoorTests()
    parts.push(['vitest', createVitestCommand('run', ...others.filter((file) => !isDoorTest(file)))])
    parts.push(['door', createVitestCommand('run', ...door.args), door.env])
  } else {
    // Without root no test makes a mount, so files can share a process, but for those with a cache of their own.
    const isFetching = (file: string) => file.startsWith('test/fetch/')
    parts.push([
      'vitest',
      createVitestCommand('run', ...UNISOLATED_OPTIONS, ...others.filter((file) => !isFetching(file))),
    ])
    parts.push(['fetch', createVitestCommand('run', ...others.filter(isFetching))])
  }
  return runPartsWithPreparation(parts, [[['kubelet', createKubeletCommand('--small')]]], ['test/kubelet/provide.ts'])
}

async function runLongTests(): Promise<number> {
  process.env.MODEKEEP_TEST_SIZE ??= 'long'
  const parts: TestPart[] = [['vitest', createVitestCommand('run', ...selectSizedTests())]]
  const cluster: TestPart = ['cluster', [nodePath, 'test/cluster/main.ts']]
  const others: TestPart[] = [
    ['kubelet', createKubeletCommand()],
    ['nri', [nodePath, 'test/runtimes/main.ts']],
    ['e2e', [nodePath, 'test/e2e/main.ts', '--quick']],
    ['vm', [nodePath, 'test/vm/main.ts', '--quick']],
  ]
  // The cluster takes longer than all others, so it does not wait for what e2e needs besides.
  const scripts = ['test/cluster/provide.ts', 'test/e2e/provide.ts']
  return runPartsWithPreparation(parts, [[cluster], others], scripts)
}

/** What each part took, so that the end of a long output tells where the time of the run went. */
const partDurations: string[] = []

type TestPart = [name: string, command: string[], env?: NodeJS.ProcessEnv]

/**
 * Runs vitest's parts. Meanwhile scripts fetch and build the programs of the nodes, then the nodes' parts begin. These
 * mostly wait for pods, and their output is printed when vitest's has ended.
 * @param lanes parts of nodes, which run concurrently with those of the other lanes
 * @param scripts those that prepare each lane, in this order
 */
async function runPartsWithPreparation(
  parts: readonly TestPart[],
  lanes: readonly TestPart[][],
  scripts: readonly string[],
): Promise<number> {
  await installTestPackages(isRoot)
  if (!isRoot) console.log(NEEDS_ROOT_MESSAGE)
  const paths = scripts.map((script) => `${projectRoot}/${script}`)
  const prepared = isRoot ? new BackgroundPreparation(nodePath, paths) : undefined
  const output = new DelayedOutput()
  let isEnding = false
  const own = runOwn()
  const ended = await Promise.allSettled([own, ...lanes.map(runLane)])
  const failure = ended.find((one) => one.status === 'rejected')
  if (failure) throw failure.reason
  const total = sumTallies(ended.flatMap((one) => (one.status === 'fulfilled' ? one.value : [])))
  console.log(`\n${partDurations.join(', ')}`)
  printTally(total)
  return total.failed > 0 ? 1 : 0

  async function runOwn(): Promise<Tally[]> {
    const tallies: Tally[] = []
    try {
      for (const part of parts) tallies.push(await runTestPart(part, 'SIGKILL'))
    } catch (error) {
      isEnding = true
      prepared?.stop()
      throw error
    } finally {
      output.release()
    }
    return tallies
  }

  async function runLane(lane: readonly TestPart[], at: number): Promise<Tally[]> {
    const said = await prepared?.done(at)
    if (said && at < scripts.length) output.print(`\n${said}`)
    const tallies: Tally[] = []
    for (const part of lane) {
      const [name] = part
      if (!isRoot) tallies.push(reportSkippedKubelet(name))
      else if (!isEnding)
        tallies.push(await runTestPart(part, 'SIGTERM', (line) => output.print(`${name.padEnd(8)}${line}`)))
    }
    return tallies
  }
}

function runCheck(what: string, command: string, ...rest: string[]): void {
  console.log(`Checking ${what} …`)
  const { error, status } = spawnSync(command, rest, { stdio: 'inherit' })
  if (error) throw error
  if (status !== 0) throw new EndedEarly(status ?? 1)
}

/** @param print gets each line of the output; undefined: the output is this process's */
async function runTestPart(
  [name, command, env = process.env]: TestPart,
  end: 'SIGKILL' | 'SIGTERM',
  print?: (line: string) => void,
): Promise<Tally> {
  const file = `${temporaryDirectory}/${name}`
  const startedMs = performance.now()
  const status = await runConfined(command, { ...env, [TALLY_FILE]: file }, end, print)
  partDurations.push(`${name} ${Math.round((performance.now() - startedMs) / 1000)} s`)
  if (status === INTERRUPTED_EXIT_CODE) throw new EndedEarly(status)
  return readTally(name, file, status)
}

function reportSkippedKubelet(name: string): Tally {
  console.log(`\nskipped 1: pods of a real ${name} (skipped: they need root; run "sudo npm test")`)
  return { passed: 0, failed: 0, skipped: 1, failures: [] }
}

const INTERRUPTED_EXIT_CODE = 130

class EndedEarly extends Error {
  readonly status: number

  constructor(status: number) {
    super()
    this.status = status
  }
}

function exitTestRun(status: number): never {
  // Processes of an interrupted run may still end and write there.
  fs.rmSync(temporaryDirectory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  process.exit(status)
}

async function runNamedTests(...rest: string[]): Promise<number> {
  const isWatching = rest.includes('--watch')
  return runConfined(createVitestCommand(...(isWatching ? [] : ['run']), ...rest), process.env)
}

function runTestCommand(): Promise<number> {
  const [mode, ...rest] = testArguments
  if (mode === undefined) return runAllTests()
  if (mode === '--long' && rest.length === 0) return runLongTests()
  if (mode === '--unit') {
    process.env.MODEKEEP_TEST_SIZE = 'unit'
    return runNamedTests(...UNISOLATED_OPTIONS, ...selectUnitTests(), ...rest)
  }
  if (!isRoot) console.log(NEEDS_ROOT_MESSAGE)
  if (testArguments.includes('--door')) {
    const { args, env } = selectDoorTests(testArguments.filter((argument) => argument !== '--door'))
    return runConfined(createVitestCommand('run', ...args), env)
  }
  if (mode !== '--results') return runNamedTests(...testArguments)
  const [file, ...tests] = rest
  if (file === undefined || tests.length === 0) throw new Error('--results FILE TEST...: name the tests too')
  process.env[RESULTS_FILE] = resolve(file)
  return runNamedTests(...tests)
}

runTestCommand().then(
  (status) => exitTestRun(status),
  (error) => {
    if (!(error instanceof EndedEarly)) console.error(error instanceof Error ? error.message : error)
    exitTestRun(error instanceof EndedEarly ? error.status : 1)
  },
)
