import * as fs from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { FairSemaphore } from '../../src/kernel/waiting.ts'
import { sumTallies } from '../helpers/tally.ts'
import { type GuestRun, runInGuest } from './boot.ts'
import type { ProvidedKernel } from './kernels.ts'
import { type BootName, isBootSelected, type LabOptions } from './options.ts'
import type { EmulatedGuest, ProvidedLab } from './provide.ts'
import { createQemuMachine } from './qemu.ts'
import { type KernelResults, parseGuestTests, parseListCases, type TestOutcome, tallyOutcomes } from './report.ts'
import { createUmlMachine } from './uml.ts'

const PROJECT = resolve(import.meta.dirname, '../..')
const MINUTE_MS = 60_000

/** A boot of a kernel, and the tests that the guest runs. */
interface LabBoot {
  name: BootName
  tests: readonly string[]
  /** More parameters of the kernel. */
  parameters: readonly string[]
  timeoutMs: number
}

const LAB_BOOTS: readonly LabBoot[] = [
  { name: 'cases', tests: ['test/vm/cases/'], parameters: [], timeoutMs: 60 * MINUTE_MS },
  {
    name: 'apparmor',
    tests: ['test/vm/security/apparmor.vm.ts'],
    parameters: ['lsm=capability,yama,apparmor', 'apparmor=1'],
    timeoutMs: 10 * MINUTE_MS,
  },
  {
    name: 'selinux',
    tests: ['test/vm/security/selinux'],
    // The guest's root is mounted before the policy is loaded, so it is loaded in permissive mode.
    parameters: ['security=selinux', 'selinux=1', 'enforcing=0'],
    timeoutMs: 20 * MINUTE_MS,
  },
  { name: 'power', tests: ['test/power/'], parameters: [], timeoutMs: 30 * MINUTE_MS },
  // The tests that a change is held by on the machine's own kernel.
  { name: 'project', tests: ['test/conformance/', 'test/kernel/'], parameters: [], timeoutMs: 60 * MINUTE_MS },
]

/** Runs of the lab: the guests share what was provided, and each leaves its results below `place`. */
export class Lab {
  readonly #provided: ProvidedLab
  readonly #options: LabOptions
  readonly #place: string
  readonly #results = new Map<ProvidedKernel, KernelResults>()

  constructor(provided: ProvidedLab, options: LabOptions, place: string) {
    this.#provided = provided
    this.#options = options
    this.#place = place
  }

  /** Boots each kernel as often as the options ask for. A guest has one processor, so several kernels run at a time. */
  async run(): Promise<KernelResults[]> {
    const { umlKernels, emulatedGuests } = this.#provided
    const turns = new FairSemaphore(availableParallelism())
    let isEnding = false
    const inTurn = async (work: () => Promise<void>) => {
      using _turn = await turns.take()
      try {
        if (!isEnding) await work()
      } catch (error) {
        isEnding = true
        throw error
      }
    }
    const runKernel = async (kernel: ProvidedKernel) => {
      for (const boot of selectBoots(this.#options, this.#provided))
        await this.#runTests(kernel, boot, `linux-${kernel.version}-${boot.name}`)
    }
    const ended = await Promise.allSettled([
      ...umlKernels.map((kernel) => inTurn(() => runKernel(kernel))),
      ...emulatedGuests.map((guest) => inTurn(() => this.#runList(guest))),
    ])
    const failure = ended.find((one) => one.status === 'rejected')
    if (failure) throw failure.reason
    if (umlKernels.length > 1 && isBootSelected(this.#options, 'upgrade')) {
      // From the oldest kernel to the newest and back, with the same disks.
      const steps = [...umlKernels, ...umlKernels.slice(0, -1).reverse()]
      for (const [step, kernel] of steps.entries()) await this.#runTests(kernel, UPGRADE_BOOT, 'upgrade', step)
    }
    const all = [...umlKernels, ...emulatedGuests.map(({ kernel }) => kernel)]
    return all.flatMap((kernel) => this.#results.get(kernel) ?? [])
  }

  /** @param step of a sequence of boots that share the directory */
  async #runTests(kernel: ProvidedKernel, boot: LabBoot, directory: string, step = 0): Promise<void> {
    const exchange = this.#makeExchange(directory)
    const tests = `${exchange}/tests.json`
    fs.rmSync(tests, { force: true })
    const ended = await this.#boot(kernel, boot.name, {
      machine: createUmlMachine(kernel, this.#provided.busybox),
      command: createGuestCommand(boot, this.#options, this.#provided, step),
      parameters: boot.parameters,
      exchange,
      timeoutMs: boot.timeoutMs,
    })
    const outcomes = fs.existsSync(tests) ? parseGuestTests(fs.readFileSync(tests, 'utf8')) : []
    // vitest reports tests that --only does not name as skipped.
    const isNamed = ({ status }: TestOutcome) => getTitlePattern(this.#options) === '' || status !== 'skipped'
    this.#add(kernel, boot.name, ended, outcomes.filter(isNamed))
  }

  /** Runs the short list on one of Debian's own kernels. */
  async #runList({ kernel, emulator, program }: EmulatedGuest): Promise<void> {
    const exchange = this.#makeExchange(`debian-${kernel.version}-${kernel.arch}`)
    fs.writeFileSync(`${exchange}/modekeep`, program, { mode: 0o755 })
    fs.copyFileSync(LIST_SCRIPT, `${exchange}/list.sh`)
    const ended = await this.#boot(kernel, 'debian', {
      machine: createQemuMachine(kernel, emulator),
      command: `MODEKEEP_LAB_ONLY=${quoteForShell(this.#options.only)} sh /exchange/list.sh`,
      parameters: [],
      exchange,
      timeoutMs: LIST_TIMEOUT_MS,
    })
    fs.rmSync(`${exchange}/modekeep`)
    const list = `${exchange}/list`
    this.#add(kernel, 'debian', ended, fs.existsSync(list) ? parseListCases(fs.readFileSync(list, 'utf8')) : [])
  }

  #makeExchange(name: string): string {
    const exchange = `${this.#place}/${name}`
    fs.mkdirSync(exchange, { recursive: true })
    fs.rmSync(`${exchange}/status`, { force: true })
    return exchange
  }

  /** @returns the exit status of the guest's command */
  async #boot(kernel: ProvidedKernel, name: BootName, run: GuestRun): Promise<number | undefined> {
    const started = performance.now()
    console.log(`\nLinux ${kernel.name}: ${name}`)
    const ended = await runInGuest(run, (line) => {
      fs.appendFileSync(`${run.exchange}/console`, `${line}\n`)
      console.log(`${kernel.version.padEnd(5)} ${line}`)
    })
    console.log(`Linux ${kernel.name}: ${name}, ${Math.round((performance.now() - started) / 1000)} s`)
    return ended
  }

  #add(kernel: ProvidedKernel, name: BootName, status: number | undefined, outcomes: TestOutcome[]): void {
    const label = `Linux ${kernel.name}`
    const tally = tallyOutcomes(label, outcomes)
    // Also for a guest that crashed, or was ended because it took too long.
    if (status !== 0 && tally.failed === 0) {
      tally.failed = 1
      tally.failures = [`${label}: ${name} ended with status ${status}`]
    }
    const before = this.#results.get(kernel)
    this.#results.set(kernel, {
      kernel,
      outcomes: [...(before?.outcomes ?? []), ...outcomes],
      tally: sumTallies(before ? [before.tally, tally] : [tally]),
    })
  }
}

/** What a guest runs that has no Node: each call takes seconds there. */
const LIST_SCRIPT = `${import.meta.dirname}/guest/list.sh`
const LIST_TIMEOUT_MS = 20 * MINUTE_MS

const UPGRADE_BOOT: LabBoot = {
  name: 'upgrade',
  tests: ['test/vm/upgrade/'],
  parameters: [],
  timeoutMs: 10 * MINUTE_MS,
}

/** Without a policy there is no boot with SELinux: `ProvidedLab.missing` has the reason. */
function selectBoots(options: LabOptions, { policy }: ProvidedLab): LabBoot[] {
  const isPossible = ({ name }: LabBoot) =>
    isBootSelected(options, name) && (name !== 'selinux' || policy !== undefined)
  return LAB_BOOTS.filter(isPossible).map((boot) =>
    options.isQuick ? { ...boot, tests: QUICK_TESTS, timeoutMs: QUICK_TIMEOUT_MS } : boot,
  )
}

/** The two gravest faults that another kernel showed: a volume taken for another one, and a stale handle. */
const QUICK_TESTS = ['test/vm/cases/identity.vm.ts', 'test/kernel/nameless-errors.kernel.test.ts']
const QUICK_TITLES = 'on xfs whose disk|that its handle is stale'
/** A machine that is busy with the rest of the gate takes several minutes. */
const QUICK_TIMEOUT_MS = 20 * MINUTE_MS

function createGuestCommand(
  { tests }: LabBoot,
  options: LabOptions,
  { servers, policy }: ProvidedLab,
  step: number,
): string {
  const titles = getTitlePattern(options)
  const pattern = titles === '' ? [] : ['-t', titles]
  const args = ['--config', 'test/vm/vitest.config.ts', ...tests, ...pattern].map(quoteForShell)
  return [
    `export MODEKEEP_LAB=1 MODEKEEP_TEST_INSTALL=no NO_COLOR=1 CI=true MODEKEEP_LAB_SERVERS=${quoteForShell(servers)} MODEKEEP_LAB_STEP=${step}`,
    ...(policy === undefined ? [] : [`export MODEKEEP_LAB_POLICY=${quoteForShell(policy)}`]),
    `cd ${quoteForShell(PROJECT)} && exec node_modules/.bin/node scripts/test.ts ${args.join(' ')}`,
  ].join('\n')
}

function getTitlePattern({ only, isQuick }: LabOptions): string {
  return only === '' && isQuick ? QUICK_TITLES : only
}

const quoteForShell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
