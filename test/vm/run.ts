import * as fs from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { FairSemaphore } from '../../src/kernel/waiting.ts'
import { sumTallies, type Tally } from '../helpers/tally.ts'
import { runInGuest } from './boot.ts'
import type { BootName, LabOptions } from './options.ts'
import type { ProvidedKernel, ProvidedLab } from './provide.ts'
import { parseGuestTests, type TestOutcome, tallyOutcomes } from './report.ts'

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
  { name: 'power', tests: ['test/power/'], parameters: [], timeoutMs: 30 * MINUTE_MS },
  // The tests that a change is held by on the machine's own kernel.
  { name: 'project', tests: ['test/conformance/', 'test/kernel/'], parameters: [], timeoutMs: 60 * MINUTE_MS },
]

/** How the tests of one kernel ended. */
export interface KernelResults {
  kernel: ProvidedKernel
  outcomes: TestOutcome[]
  tally: Tally
}

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
    const { kernels } = this.#provided
    const { boots } = this.#options
    const turns = new FairSemaphore(availableParallelism())
    await Promise.all(
      kernels.map(async (kernel) => {
        using _turn = await turns.take()
        for (const boot of selectBoots(this.#options))
          await this.#boot(kernel, boot, `linux-${kernel.version}-${boot.name}`)
      }),
    )
    if (kernels.length > 1 && (boots.length === 0 || boots.includes('upgrade'))) {
      // From the oldest kernel to the newest and back, with the same disks.
      const steps = [...kernels, ...kernels.slice(0, -1).reverse()]
      for (const [step, kernel] of steps.entries()) await this.#boot(kernel, UPGRADE_BOOT, 'upgrade', step)
    }
    return kernels.flatMap((kernel) => this.#results.get(kernel) ?? [])
  }

  /** @param step of a sequence of boots that share the directory */
  async #boot(kernel: ProvidedKernel, boot: LabBoot, directory: string, step = 0): Promise<void> {
    const exchange = `${this.#place}/${directory}`
    fs.mkdirSync(exchange, { recursive: true })
    const [tests, status] = [`${exchange}/tests.json`, `${exchange}/status`]
    for (const file of [tests, status]) fs.rmSync(file, { force: true })
    const started = performance.now()
    console.log(`\nLinux ${kernel.release}: ${boot.name}`)
    const ended = await runInGuest(
      {
        kernel,
        busybox: this.#provided.busybox,
        command: createGuestCommand(boot, this.#options, this.#provided.servers, step),
        parameters: boot.parameters,
        exchange,
        timeoutMs: boot.timeoutMs,
      },
      (line) => {
        fs.appendFileSync(`${exchange}/console`, `${line}\n`)
        console.log(`${kernel.version.padEnd(5)} ${line}`)
      },
    )
    console.log(`Linux ${kernel.release}: ${boot.name}, ${Math.round((performance.now() - started) / 1000)} s`)
    const outcomes = fs.existsSync(tests) ? parseGuestTests(fs.readFileSync(tests, 'utf8')) : []
    // vitest reports tests that --only does not name as skipped.
    const isNamed = ({ status }: TestOutcome) => getTitlePattern(this.#options) === '' || status !== 'skipped'
    this.#add(kernel, boot, ended, outcomes.filter(isNamed))
  }

  #add(kernel: ProvidedKernel, { name }: LabBoot, status: number | undefined, outcomes: TestOutcome[]): void {
    const label = `Linux ${kernel.version}`
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

const UPGRADE_BOOT: LabBoot = {
  name: 'upgrade',
  tests: ['test/vm/upgrade/'],
  parameters: [],
  timeoutMs: 10 * MINUTE_MS,
}

function selectBoots({ boots, isQuick }: LabOptions): LabBoot[] {
  return LAB_BOOTS.filter(({ name }) => boots.length === 0 || boots.includes(name)).map((boot) =>
    isQuick ? { ...boot, tests: QUICK_TESTS, timeoutMs: QUICK_TIMEOUT_MS } : boot,
  )
}

/** The two gravest faults that another kernel showed: a volume taken for another one, and a stale handle. */
const QUICK_TESTS = ['test/vm/cases/identity.vm.ts', 'test/kernel/nameless-errors.kernel.test.ts']
const QUICK_TITLES = 'on xfs whose disk|that its handle is stale'
/** A machine that is busy with the rest of the gate takes several minutes. */
const QUICK_TIMEOUT_MS = 20 * MINUTE_MS

function createGuestCommand({ tests }: LabBoot, options: LabOptions, servers: string, step: number): string {
  const titles = getTitlePattern(options)
  const pattern = titles === '' ? [] : ['-t', titles]
  const args = ['--config', 'test/vm/vitest.config.ts', ...tests, ...pattern].map(quoteForShell)
  return [
    `export MODEKEEP_LAB=1 MODEKEEP_TEST_INSTALL=no NO_COLOR=1 CI=true MODEKEEP_LAB_SERVERS=${quoteForShell(servers)} MODEKEEP_LAB_STEP=${step}`,
    `cd ${quoteForShell(PROJECT)} && exec node_modules/.bin/node scripts/test.ts ${args.join(' ')}`,
  ].join('\n')
}

function getTitlePattern({ only, isQuick }: LabOptions): string {
  return only === '' && isQuick ? QUICK_TITLES : only
}

const quoteForShell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
