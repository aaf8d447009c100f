import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as z from 'zod/mini'
import { formatMarkdownCode, formatMarkdownTable, replaceBetweenMarks } from './table.ts'

const RESULTS_DIRECTORY = resolve(import.meta.dirname, '../../docs/results')

/** What a suite runs, in words. */
const TEST_SUITE_TEXTS = {
  'test:kubelet': 'pods of a kubelet, in containers, over its restarts',
  'test:cluster': 'a cluster with an API server',
  'test:nri': "containers of runtimes, on other drivers' volumes",
  'test:e2e': "Kubernetes' own storage tests, through CSI",
  'test:vm': 'walks, mappings, servers, hardened nodes, power cuts and upgrades on other kernels',
  test: 'mounts, mappings, walks and refusals on file systems',
} as const

export type TestSuiteName = keyof typeof TEST_SUITE_TEXTS

const versionSchema = z.string().check(z.regex(/^\d[\w.+~-]*$/))
/** One, or each of which all cases were run on. */
const versionsSchema = z.optional(z.union([versionSchema, z.array(versionSchema)]))
const caseCountSchema = z.int().check(z.nonnegative())
const testResultsSchema = z.strictObject({
  suite: z.enum(Object.keys(TEST_SUITE_TEXTS) as [TestSuiteName]),
  date: z.string().check(z.regex(/^\d{4}-\d\d-\d\d$/)),
  kubernetes: versionsSchema,
  containerd: versionsSchema,
  runc: versionsSchema,
  kernel: z.union([z.string(), z.array(z.string())]),
  /** The packages that the kernels are from, where they are not the machine's own. */
  kernelPackages: z.optional(z.array(z.string())),
  /** As /etc/os-release names it. */
  distribution: z.optional(z.string()),
  processor: z.optional(z.string()),
  fileSystems: z.optional(z.array(z.string())),
  cases: z.strictObject({ passed: caseCountSchema, failed: caseCountSchema, notRun: caseCountSchema }),
})

/** What a run was made with, and how its cases ended. */
export type TestResults = z.infer<typeof testResultsSchema>

const PROGRAM_NAMES = { kubernetes: 'Kubernetes', containerd: 'containerd', runc: 'runc' } as const

/** The files of docs/results, by name. @throws {Error} that names the file and the key */
export function readTestResults(directory = RESULTS_DIRECTORY): TestResults[] {
  const files = readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .sort()
  return files.map((file) => {
    const { data, error } = testResultsSchema.safeParse(JSON.parse(readFileSync(join(directory, file), 'utf8')))
    if (data !== undefined) return data
    const [issue] = error.issues
    throw new Error(`docs/results/${file}: ${issue?.path.join('.')}: ${issue?.message}`)
  })
}

/** A row for each run, and one for all that no run was made with. */
export function createTestResultsTable(results: readonly TestResults[]): string {
  const rows = results.map((result) => {
    const { suite, date, kernel, distribution, processor, fileSystems = [], cases } = result
    const versions = (['kubernetes', 'containerd', 'runc'] as const).flatMap((key) =>
      result[key] === undefined ? [] : [`${PROGRAM_NAMES[key]} ${[result[key]].flat().join(' and ')}`],
    )
    const ended = [`${cases.passed} passed`, `${cases.failed} failed`, `${cases.notRun} not run`]
    const shown = ended.filter((text, at) => at < 1 || !text.startsWith('0 '))
    return [
      `${TEST_SUITE_TEXTS[suite]} (${formatMarkdownCode(`npm ${suite === 'test' ? 'test' : `run ${suite}`}`)})`,
      [...versions, ...fileSystems].join(', '),
      [
        `Linux ${[...new Set([kernel].flat().map(formatRelease))].join(', ')}`,
        distribution,
        processor,
        listMissingResultFields(result),
      ]
        .filter(Boolean)
        .join(', '),
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
  return formatMarkdownTable(['what', 'with', 'on', 'cases', 'when'], [...rows, others])
}

/** Without the package's revision, and without the processor, which has a name of its own. */
const formatRelease = (release: string) => release.replace(/[- ].*/, '')

/** What a run of before it was noted cannot tell. */
function listMissingResultFields(result: TestResults): string | undefined {
  const missing = (['distribution', 'processor'] as const).filter((key) => result[key] === undefined)
  return missing.length > 0 ? `${missing.join(' and ')} not noted` : undefined
}

const RESULTS_TABLE_MARKS = ['<!-- Written by "npm run docs" from docs/results. -->\n', '\n<!-- End. -->'] as const

/** A page with the table between its two marks. @throws {Error} for a page without them */
export function insertResultsTable(page: string, text: string): string {
  return replaceBetweenMarks(page, RESULTS_TABLE_MARKS, text)
}
