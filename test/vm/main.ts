import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { exitAfterRun } from '../helpers/command-exit.ts'
import { printTally, sumTallies } from '../helpers/tally.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { InterruptedError } from './boot.ts'
import { readOptions, USAGE } from './options.ts'
import { provideLab } from './provide.ts'
import { formatLabTables } from './report.ts'
import { writeLabResults } from './results.ts'
import { Lab } from './run.ts'

/** A boot uses this much: the guest's memory, a part of which may be copied, and the disks of its tests. */
const NEEDED_BYTES = 4 << 30

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if (process.arch !== 'x64')
    throw new UnavailableError(`Debian has user-mode-linux for x86-64 alone, and this is ${process.arch}`)
  if (process.getuid?.() !== 0) throw new UnavailableError('the guests need root; run "sudo npm run test:vm"')
  const lab = await provideLab(options, new Clock(console.log))
  const place = fs.mkdtempSync(`${tmpdir()}/modekeep-vm-`)
  try {
    assertFreeSpace(place)
    const started = performance.now()
    const results = await new Lab(lab, options, place).run()
    const seconds = Math.round((performance.now() - started) / 1000)
    const missing = lab.missing.map((why) => `skipped 1: ${why}`)
    console.log(`\n${[formatLabTables(results), ...missing, `${seconds} s`].join('\n\n')}`)
    const tally = sumTallies(results.map((result) => result.tally))
    tally.skipped += lab.missing.length
    if (options.results) writeLabResults(options.results, results)
    if (options.logs) keepConsoles(place, options.logs)
    printTally(tally)
    return tally.failed > 0 ? 1 : 0
  } catch (error) {
    if (error instanceof InterruptedError) return 130
    throw error
  } finally {
    fs.rmSync(place, { recursive: true, force: true })
  }
}

/** @throws {UnavailableError} that names the directory and what is missing */
function assertFreeSpace(place: string): void {
  const { bavail, bsize } = fs.statfsSync(place)
  const freeBytes = bavail * bsize
  if (freeBytes >= NEEDED_BYTES) return
  const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(1)
  throw new UnavailableError(
    `${tmpdir()} has ${gib(freeBytes)} GiB free, and a guest needs ${gib(NEEDED_BYTES)}: set TMPDIR to another directory`,
  )
}

function keepConsoles(place: string, logs: string): void {
  fs.mkdirSync(logs, { recursive: true })
  for (const name of fs.readdirSync(place)) {
    const console = `${place}/${name}/console`
    if (fs.existsSync(console)) fs.copyFileSync(console, `${logs}/${name}.log`)
  }
}

exitAfterRun(main(), 'test:vm', 'other kernels')
