import * as z from 'zod/mini'
import { formatFailure, type Tally } from '../helpers/tally.ts'
import { type ProvidedKernel, UML_PACKAGE } from './kernels.ts'

/** How one test of a guest ended. */
export interface TestOutcome {
  /** The file below test, without its ending. */
  file: string
  title: string
  status: 'passed' | 'failed' | 'skipped'
  messages: readonly string[]
}

/** What vitest's JSON reporter writes, as far as it is used. */
const guestTestsSchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      message: z.optional(z.string()),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          title: z.string(),
          status: z.string(),
          failureMessages: z.nullish(z.array(z.string())),
        }),
      ),
    }),
  ),
})

export function parseGuestTests(text: string): TestOutcome[] {
  return guestTestsSchema.parse(JSON.parse(text)).testResults.flatMap(({ name, message, assertionResults }) => {
    const file = name.replace(/^.*\/test\//, '').replace(/\.(vm|kernel\.test|test)\.ts$/, '')
    if (assertionResults.length === 0)
      return [{ file, title: 'the file is loaded', status: 'failed' as const, messages: [message ?? ''] }]
    return assertionResults.map(({ fullName, title, status, failureMessages }) => ({
      file,
      // The lab's own titles stand alone.
      title: file.startsWith('vm/') ? title : fullName,
      status: status === 'passed' || status === 'failed' ? status : ('skipped' as const),
      messages: failureMessages ?? [],
    }))
  })
}

/** How the tests of one kernel ended. */
export interface KernelResults {
  kernel: ProvidedKernel
  outcomes: TestOutcome[]
  tally: Tally
}

/** Reads what guest/list.sh writes: a line for each case, with status, title and reason. */
export function parseListCases(text: string): TestOutcome[] {
  const lines = text.split('\n').filter(Boolean)
  return lines.map((line) => {
    const [status, title = '', reason = ''] = line.split('\t')
    return { file: 'vm/list', title, status: status === 'passed' ? status : 'failed', messages: reason ? [reason] : [] }
  })
}

export function tallyOutcomes(what: string, outcomes: readonly TestOutcome[]): Tally {
  const count = (wanted: TestOutcome['status']) => outcomes.filter(({ status }) => status === wanted).length
  const failures = outcomes
    .filter(({ status }) => status === 'failed')
    .map(({ file, title, messages }) => formatFailure(`${what}: ${file} > ${title}`, ...messages))
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped'), failures }
}

const TITLE_WIDTH = 52
const COLUMN_WIDTH = 9
const MARKS = { passed: 'ok', failed: 'FAILED', skipped: '-' } as const

/** A table for user-mode Linux and one for Debian's own kernels, whose cases are others; none where there is no such kernel. */
export function formatLabTables(results: readonly KernelResults[]): string {
  const isUml = ({ kernel }: KernelResults) => kernel.packageName === UML_PACKAGE
  const parts = [results.filter(isUml), results.filter((result) => !isUml(result))]
  return parts
    .filter((part) => part.length > 0)
    .map(formatLabTable)
    .join('\n\n')
}

/** A row for each test of the lab's own, a column for each kernel; the project's own tests are one row a folder. */
function formatLabTable(results: readonly KernelResults[]): string {
  const widths = results.map(({ kernel }) => Math.max(kernel.name.length, COLUMN_WIDTH))
  const head = formatRow(
    'case',
    results.map(({ kernel }) => kernel.name),
    widths,
  )
  const rows = [...new Set(results.flatMap(({ outcomes }) => outcomes.map(nameRow)))].map((name) => {
    const cells = results.map(({ outcomes }) => formatCell(outcomes.filter((outcome) => nameRow(outcome) === name)))
    return formatRow(name, cells, widths)
  })
  return [head, ...rows].join('\n')
}

function nameRow({ file, title }: TestOutcome): string {
  return file.startsWith('vm/') ? title.replace(/ \(skipped: .*/, '') : `tests of ${file.replace(/\/.*/, '')}`
}

function formatCell(outcomes: readonly TestOutcome[]): string {
  const [first] = outcomes
  if (first === undefined) return ''
  if (outcomes.length === 1) return MARKS[first.status]
  const failed = outcomes.filter(({ status }) => status === 'failed').length
  const passed = outcomes.filter(({ status }) => status === 'passed').length
  return failed > 0 ? `${failed} FAILED` : `${passed} ok`
}

/** Wraps the title; the cells are on its last line. */
function formatRow(title: string, cells: readonly string[], widths: readonly number[]): string {
  const lines = ['']
  for (const word of title.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last !== '' && last.length + word.length >= TITLE_WIDTH) lines.push(`  ${word}`)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  const last = (lines.pop() ?? '').padEnd(TITLE_WIDTH)
  return [...lines, [last, ...cells.map((cell, column) => cell.padEnd(widths[column] ?? 0))].join(' ').trimEnd()].join(
    '\n',
  )
}
