import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as z from 'zod/mini'
import { between, code, table } from './table.ts'

const DIRECTORY = resolve(import.meta.dirname, '../../docs/results')

/** What a suite runs, in words. */
const SUITES = {
  'test:kubelet': 'pods of a kubelet, in containers, over its restarts',
  'test:cluster': 'a cluster with an API server',
  'test:nri': "containers of runtimes, on other drivers' volumes",
  'test:e2e': "Kubernetes' own storage tests, through CSI",
  test: 'mounts, mappings, walks and refusals on file systems',
} as const

export type TriedSuite = keyof typeof SUITES

const version = z.string().check(z.regex(/^\d[\w.+~-]*$/))
/** One, or each of which all cases were run on. */
const versions = z.optional(z.union([version, z.array(version)]))
const count = z.int().check(z.nonnegative())
const schema = z.strictObject({
  suite: z.enum(Object.keys(SUITES) as [TriedSuite]),
  date: z.string().check(z.regex(/^\d{4}-\d\d-\d\d$/)),
  kubernetes: versions,
  containerd: versions,
  runc: versions,
  kernel: z.string(),
  /** As /etc/os-release names it. */
  distribution: z.optional(z.string()),
  processor: z.optional(z.string()),
  fileSystems: z.optional(z.array(z.string())),
  cases: z.strictObject({ passed: count, failed: count, notRun: count }),
})

/** What a run was made with, and how its cases ended. */
export type Results = z.infer<typeof schema>

const NAMES = { kubernetes: 'Kubernetes', containerd: 'containerd', runc: 'runc' } as const

/** The files of docs/results, by name. @throws {Error} that names the file and the key */
export function readResults(directory = DIRECTORY): Results[] {
  const files = readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .sort()
  return files.map((file) => {
    const { data, error } = schema.safeParse(JSON.parse(readFileSync(join(directory, file), 'utf8')))
    if (data !== undefined) return data
    const [issue] = error.issues
    throw new Error(`docs/results/${file}: ${issue?.path.join('.')}: ${issue?.message}`)
  })
}

/** A row for each run, and one for all that no run was made with. */
export function triedTable(results: readonly Results[]): string {
  const rows = results.map((result) => {
    const { suite, date, kernel, distribution, processor, fileSystems = [], cases } = result
    const versions = (['kubernetes', 'containerd', 'runc'] as const).flatMap((key) =>
      result[key] === undefined ? [] : [`${NAMES[key]} ${[result[key]].flat().join(' and ')}`],
    )
    const ended = [`${cases.passed} passed`, `${cases.failed} failed`, `${cases.notRun} not run`]
    const shown = ended.filter((text, at) => at < 1 || !text.startsWith('0 '))
    return [
      `${SUITES[suite]} (${code(`npm ${suite === 'test' ? 'test' : `run ${suite}`}`)})`,
      [...versions, ...fileSystems].join(', '),
      [`Linux ${kernel.replace(/-.*/, '')}`, distribution, processor, notNoted(result)].filter(Boolean).join(', '),
      shown.join(', '),
      date,
    ]
  })
  const others = [
    'any other version, container runtime, distribution, processor or file system',
    '',
    '',
    'not tried',
    '',
  ]
  return table(['what', 'with', 'on', 'cases', 'when'], [...rows, others])
}

/** What a run of before it was noted cannot tell. */
function notNoted(result: Results): string | undefined {
  const missing = (['distribution', 'processor'] as const).filter((key) => result[key] === undefined)
  return missing.length > 0 ? `${missing.join(' and ')} not noted` : undefined
}

const MARKS = ['<!-- Written by "npm run docs" from docs/results. -->\n', '\n<!-- End. -->'] as const

/** A page with the table between its two marks. @throws {Error} for a page without them */
export function withTable(page: string, text: string): string {
  return between(page, MARKS, text)
}
