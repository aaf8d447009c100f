import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ImportGraph } from './import-graph.ts'
import { findMutants, type Mutant } from './mutants.ts'

// Changes src by one operator at a time and runs the tests that import the changed file. A mutant that no test notices is
// a line that nothing guards. The sample is drawn by a seed, and a run that is started again goes on where it ended.
const HELP = `npm run test:mutate -- [--seed N] [--count N] [--only TEXT] [--results FILE] [--again FILE]

Draws COUNT mutants (400) of src by SEED (1), or of the files whose path has TEXT, runs the tests that import each changed
file, and appends the result of each to FILE (test/mutate/results.jsonl). Mutants that FILE has are not tried again.
With --again it tries those that FILE has as killed instead, and fails if one survives. Before tests are deleted or
rewritten: --again test/mutate/sample.jsonl. A mutant is found by its file and function, so a rename of one changes FILE.
`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '400' },
    only: { type: 'string', default: '' },
    again: { type: 'string', default: '' },
    results: { type: 'string', default: 'test/mutate/results.jsonl' },
    help: { type: 'boolean', default: false },
  },
})

const ROOT = resolve(import.meta.dirname, '../..')
const TIMEOUT_MS = 300_000

interface Result {
  /** `src/mount/plan.ts planMount equality 2` */
  mutant: string
  /** The test file that failed; '' where none did. */
  killedBy: string
}

type NamedMutant = Mutant & { file: string; name: string }

function listMutants(): NamedMutant[] {
  const files = fs.globSync('src/**/*.ts', { cwd: ROOT }).filter((file) => file.includes(values.only))
  return files.flatMap((file) =>
    findMutants(fs.readFileSync(join(ROOT, file), 'utf8')).map((mutant) => ({
      ...mutant,
      file,
      name: `${file} ${mutant.functionName} ${mutant.operator} ${mutant.index}`,
    })),
  )
}

function readResults(file: string): Result[] {
  const lines = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  return lines.map((line) => JSON.parse(line))
}

function chooseMutants(): NamedMutant[] {
  const all = listMutants()
  if (values.again !== '') {
    const killed = new Set(
      readResults(resolve(ROOT, values.again)).flatMap(({ mutant, killedBy }) => (killedBy ? [mutant] : [])),
    )
    const found = all.filter(({ name }) => killed.delete(name))
    for (const name of killed) console.log(`not found  ${name}`)
    return found
  }
  const rank = ({ name }: { name: string }) => createHash('sha256').update(`${values.seed} ${name}`).digest('hex')
  const ranked = all.map((mutant) => ({ mutant, rank: rank(mutant) })).sort((a, b) => a.rank.localeCompare(b.rank))
  return ranked.slice(0, Number(values.count)).map(({ mutant }) => mutant)
}

/** A copy of the checkout, so that a mutant never is in the engineer's own. */
function makeCopy(): string {
  const copy = fs.mkdtempSync(`${tmpdir()}/modekeep-mutate-`)
  execFileSync('git', ['clone', '--quiet', ROOT, copy])
  execFileSync('cp', ['-a', `${ROOT}/node_modules`, `${copy}/node_modules`])
  fs.cpSync(`${ROOT}/src`, `${copy}/src`, { recursive: true })
  fs.cpSync(`${ROOT}/test`, `${copy}/test`, { recursive: true })
  return copy
}

/** @returns the test file that failed, '' where all passed */
function runTests(copy: string, files: readonly string[]): string {
  if (files.length === 0) return ''
  const node = `${copy}/node_modules/.bin/node`
  const arguments_ = ['scripts/test.ts', '--no-isolate', '--bail', '1', ...files]
  // Its own processes end with it, and its mounts with the namespace.
  const { status, stdout, error } = spawnSync(
    'unshare',
    ['--pid', '--fork', '--kill-child', '--mount-proc', node, ...arguments_],
    {
      cwd: copy,
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: 256 << 20,
    },
  )
  if (status === 0) return ''
  return error ? 'time' : (/^failed: (\S+)/m.exec(stdout)?.[1] ?? 'ended')
}

function main(): number {
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  const file = resolve(ROOT, values.results)
  const done = new Map(readResults(file).map(({ mutant, killedBy }) => [mutant, killedBy]))
  const graph = new ImportGraph(ROOT)
  const mutants = chooseMutants()
  const copy = makeCopy()
  try {
    for (const [at, mutant] of mutants.entries()) {
      if (done.has(mutant.name)) continue
      const path = join(copy, mutant.file)
      const text = fs.readFileSync(path, 'utf8')
      fs.writeFileSync(path, text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end))
      const { unit, kernel } = graph.findTests(mutant.file)
      const killedBy = runTests(copy, unit) || runTests(copy, kernel)
      fs.writeFileSync(path, text)
      done.set(mutant.name, killedBy)
      fs.appendFileSync(file, `${JSON.stringify({ mutant: mutant.name, killedBy } satisfies Result)}\n`)
      console.log(`${at + 1}/${mutants.length}  ${killedBy ? 'killed  ' : 'survived'}  ${mutant.name}`)
    }
  } finally {
    fs.rmSync(copy, { recursive: true, force: true })
  }
  const killed = mutants.filter(({ name }) => done.get(name) !== '').length
  console.log(`\n${killed} killed, ${mutants.length - killed} survived`)
  return values.again !== '' && killed < mutants.length ? 1 : 0
}

process.exit(main())
