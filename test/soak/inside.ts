import { printTally } from '../helpers/tally.ts'
import { makeDisk } from './node.ts'
import type { Options } from './options.ts'
import { type Report, Soak } from './run.ts'
import { progress, text } from './text.ts'

// In its own namespaces: everything that remains when this process ends is removed with them.
const PLACE = '/mnt'
const EACH_MS = 200
const FIRST_AFTER_MS = 1000

const options = JSON.parse(process.argv[2] ?? '') as Options
const started = performance.now()
const isShown = process.stderr.isTTY && !options.json
let told = 0
let shown = 0
let passed = 0

function tell(report: Report): void {
  const now = performance.now()
  const news = report.odd.slice(told)
  told = report.odd.length
  if (news.length > 0 && !options.json) process.stderr.write(news.map((what) => `\r\x1b[KODD ${what}\n`).join(''))
  if (!isShown && !options.json && report.checkpoints > passed) {
    passed = report.checkpoints
    process.stderr.write(`${progress(report)}\n`)
  }
  if (!isShown || now - started < FIRST_AFTER_MS || now - shown < EACH_MS) return
  shown = now
  process.stderr.write(`\r${progress(report)}\x1b[K`)
}

process.env.TMPDIR = makeDisk(PLACE)
new Soak(options, tell).run().then(
  (report) => {
    if (shown > 0) process.stderr.write('\r\x1b[K')
    if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
    else {
      process.stdout.write(text(report))
      printTally({ passed: report.passed, failed: report.failed, skipped: 0, failures: report.odd })
    }
    process.exit(report.failed > 0 ? 1 : 0)
  },
  (error) => {
    console.error(error)
    process.exit(2)
  },
)
