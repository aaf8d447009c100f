import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lock } from '../../src/kernel/host.ts'
import { tryLockFile } from '../../src/kernel/linux/locks.ts'
import { isRoot } from '../helpers/stage.ts'

const PATTERN = '/proc/sys/kernel/core_pattern'
// Not below TMPDIR: the kernel starts the program in its own mount namespace.
const PLACE = '/run/modekeep-piped-cores'
const SAVED = `${PLACE}/saved`
const LONGEST_MS = 60_000

/** The kernel names a process by its number, and has begun with its core where there is a part. */
const CATCH = 'cd "$(dirname "$0")" && head -c 8000000 > part.$1 && mv part.$1 core.$1\n'

/** Restores the earlier value, also if the test that holds its stdin is killed. Keeps a value that another process has set. */
const KEEPER = `cat > /dev/null; if [ "$(cat ${PATTERN})" = "$1" ]; then cat ${SAVED} > ${PATTERN}; fi`

/** Until its end the kernel pipes the cores of all processes of the machine to a program. */
export interface PipedCores extends AsyncDisposable {
  /** What the program got of a process that has crashed; undefined where it was not run. */
  of(pid: number): Buffer | undefined
  /** Crashes a process that may leave a core, and waits for it: those of earlier crashes are there by then. */
  control(): Promise<void>
}

/** @returns in words, why that is not possible here */
export async function pipeCores(): Promise<PipedCores | string> {
  if (!isRoot) return 'core_pattern can be set by root alone'
  const lock = await locked()
  if (lock === undefined) return 'another run of this test has set core_pattern'
  mendLeftover()
  const directory = fs.mkdtempSync(`${PLACE}/`)
  fs.writeFileSync(`${directory}/catch`, CATCH)
  const pattern = `|/bin/sh ${directory}/catch %p`
  // An empty one is written as an end of line, too.
  fs.writeFileSync(SAVED, `${patternNow()}\n`)
  const keeper = spawn('sh', ['-c', KEEPER, 'sh', pattern], { stdio: ['pipe', 'ignore', 'inherit'], detached: true })
  const cores: PipedCores = {
    of: (pid) => read(`${directory}/core.${pid}`) ?? read(`${directory}/part.${pid}`),

    async control() {
      const crashing = spawn('sleep', ['60'])
      crashing.kill('SIGSEGV')
      await once(crashing, 'exit')
      const until = performance.now() + LONGEST_MS
      while (!fs.existsSync(`${directory}/core.${crashing.pid}`)) {
        if (performance.now() > until) throw new Error(`the kernel does not run what ${pattern} names`)
        await sleep(10)
      }
      // A program that was run before has at least begun.
      await sleep(100)
    },

    async [Symbol.asyncDispose]() {
      keeper.stdin?.end()
      await ended(keeper)
      mendLeftover()
      fs.rmSync(SAVED)
      lock.release(true)
      // Not where another run waits.
      if (fs.readdirSync(PLACE).length === 0) fs.rmdirSync(PLACE)
    },
  }
  try {
    fs.writeFileSync(PATTERN, pattern)
    await cores.control()
    return cores
  } catch (error) {
    await cores[Symbol.asyncDispose]()
    return `cores cannot be piped here: ${(error as Error).message}`
  }
}

async function locked(): Promise<Lock | undefined> {
  const until = performance.now() + LONGEST_MS
  for (;;) {
    fs.mkdirSync(PLACE, { recursive: true, mode: 0o700 })
    const lock = tryLockFile(`${PLACE}/lock`)
    if (lock !== undefined || performance.now() > until) return lock
    await sleep(50)
  }
}

/** Of a run that was killed together with its keeper, or of this one's where that was. Call it under the lock. */
function mendLeftover(): void {
  if (patternNow().startsWith(`|/bin/sh ${PLACE}/`)) fs.writeFileSync(PATTERN, read(SAVED) ?? 'core')
  for (const name of fs.readdirSync(PLACE)) {
    if (name !== 'lock' && name !== 'saved') fs.rmSync(`${PLACE}/${name}`, { recursive: true })
  }
}

function patternNow(): string {
  return fs.readFileSync(PATTERN, 'utf8').trimEnd()
}

function read(path: string): Buffer | undefined {
  return fs.existsSync(path) ? fs.readFileSync(path) : undefined
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
