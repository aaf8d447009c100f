import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod/mini'
import about from '../../package.json' with { type: 'json' }
import { SIGNATURE_NAMESPACE } from '../../scripts/release/signature.ts'
import { blocksOf } from '../docs/example.ts'
import { PAGES, ROOT } from '../docs/pages.ts'
import { requireProgram } from '../helpers/needs.ts'

const FOLDER = join(ROOT, '.github/workflows')

const TEXTS = z.record(z.string(), z.string())
const STEP = z.strictObject({
  id: z.optional(z.string()),
  name: z.optional(z.string()),
  if: z.optional(z.literal('always()')),
  uses: z.optional(z.string()),
  with: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
  env: z.optional(TEXTS),
  run: z.optional(z.string()),
  'working-directory': z.optional(z.string()),
})
const PERMISSIONS = z.record(z.string(), z.enum(['read', 'write']))
const WORKFLOW = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.nullable(z.record(z.string(), z.array(z.string())))),
  permissions: PERMISSIONS,
  concurrency: z.strictObject({ group: z.string(), 'cancel-in-progress': z.boolean() }),
  jobs: z.record(
    z.string(),
    z.strictObject({
      needs: z.optional(z.string()),
      'runs-on': z.string(),
      'timeout-minutes': z.number().check(z.gt(0), z.lte(360)),
      permissions: z.optional(PERMISSIONS),
      container: z.optional(
        z.strictObject({
          image: z.string(),
          options: z.optional(z.string()),
          volumes: z.optional(z.array(z.string())),
        }),
      ),
      env: z.optional(TEXTS),
      steps: z.array(STEP),
    }),
  ),
})
type Workflow = z.infer<typeof WORKFLOW>

const readWorkflow = (name: string): Workflow => z.parse(WORKFLOW, parse(fs.readFileSync(join(FOLDER, name), 'utf8')))
const NAMES = fs.readdirSync(FOLDER)
const gate = readWorkflow('gate.yml')
const release = readWorkflow('release.yml')

const listSteps = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps)
const listRunLines = (workflow: Workflow) =>
  listSteps(workflow).flatMap(({ run = '' }) => run.split('\n').filter((line) => line !== ''))

/** Commands in code blocks of the pages, without prompts, variables before them and comments. */
const PAGE_COMMANDS = new Set(
  PAGES.flatMap(({ text }) => blocksOf(text, 'sh').flatMap(({ text: block }) => block.split('\n'))).map((line) =>
    line.replace(/\s+#.*$/, '').trim(),
  ),
)

/** Lines that no page has, and why a workflow needs them. */
const OTHER_LINES: Readonly<Record<string, string>> = {
  'apt-get update -qq': 'as .ci/run does on a bare Debian',
  'apt-get install -y -qq --no-install-recommends ca-certificates git libatomic1 nodejs npm openssh-client':
    'as .ci/run does, with the programs of a release',
  'git config --global --add safe.directory "$GITHUB_WORKSPACE"':
    'the checkout belongs to the runner, and the job to root',
  'ssh-agent -a "$SSH_AUTH_SOCK" -t 3600': 'the key is in no file, and for an hour at most',
  'printf \'%s\\n\' "$SIGNING_KEY" | ssh-add -q -': 'the key is in no argument',
  'ssh-add -L > /tmp/release-key.pub': 'npm run release signs by the agent',
  'ssh-add -q -D': 'the key is removed whatever happens',
  'echo "version=${GITHUB_REF_NAME#v}" >> "$GITHUB_OUTPUT"': 'names of files have the version',
  'gh release create "$GITHUB_REF_NAME" --draft --verify-tag --title "$GITHUB_REF_NAME" dist/release/*':
    'a maintainer publishes the draft',
}

function isKnownCommand(line: string): boolean {
  const [, script] = /^npm (?:run )?([a-z:]+)$/.exec(line) ?? []
  return (
    (script !== undefined && Object.hasOwn(about.scripts, script)) ||
    (/^\.[\w/-]+$/.test(line) && fs.existsSync(join(ROOT, line))) ||
    PAGE_COMMANDS.has(line) ||
    Object.hasOwn(OTHER_LINES, line)
  )
}

/** Returns what is unsafe in a workflow. */
function findWorkflowFaults(workflow: Workflow): string[] {
  const steps = listSteps(workflow)
  const permitted = Object.values(workflow.jobs).filter(({ permissions }) => permissions !== undefined)
  return [
    ...steps.flatMap(({ uses }) =>
      uses === undefined || /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(uses) ? [] : [`unpinned ${uses}`],
    ),
    ...steps.flatMap(({ run, uses }) => ((run === undefined) === (uses === undefined) ? ['a step runs nothing'] : [])),
    // A tag's or branch's name is a shell's word only through a variable.
    ...listRunLines(workflow).flatMap((line) => (line.includes('${{') ? [`interpolated ${line}`] : [])),
    ...listRunLines(workflow).flatMap((line) => (isKnownCommand(line) ? [] : [`unknown ${line}`])),
    ...(Object.values(workflow.permissions).includes('write') ? ['all jobs may write'] : []),
    ...(permitted.length === 0 && Object.keys(workflow.permissions).length === 0 ? ['no permissions'] : []),
    ...(Object.hasOwn(workflow.on, 'pull_request_target') ? ['foreign code runs with secrets'] : []),
    ...steps.flatMap((step) =>
      step.uses?.startsWith('actions/checkout@') && step.with?.['persist-credentials'] !== false
        ? ['the token stays in the checkout']
        : [],
    ),
  ]
}

describe('the workflows', () => {
  it.each(NAMES)('%s has pinned actions, declared permissions, known commands and no interpolated text', (name) => {
    expect(findWorkflowFaults(readWorkflow(name))).toEqual([])
  })

  it.each([
    ['an action of a branch', { uses: 'actions/attest@v4' }, 'unpinned'],
    ['an action of an abbreviated commit', { uses: 'actions/attest@1e69f48' }, 'unpinned'],
    ['a title in a command', { run: `npm run release \${{ github.event.pull_request.title }}` }, 'interpolated'],
    ['a branch in a command', { run: `echo \${{ github.ref_name }}` }, 'interpolated'],
    ['a command of its own', { run: 'make test' }, 'unknown'],
    ['a script that does not exist', { run: 'npm run tests' }, 'unknown'],
    ['a checkout with its token', { uses: `actions/checkout@${'a'.repeat(40)}` }, 'the token'],
    ['neither a command nor an action', { name: 'empty' }, 'a step runs nothing'],
  ])('a step with %s is a fault', (_fault, step, found) => {
    const jobs = { gate: { 'runs-on': 'x', 'timeout-minutes': 1, steps: [z.parse(STEP, step)] } }
    expect(findWorkflowFaults({ ...gate, jobs }).map((fault) => fault.slice(0, found.length))).toContain(found)
  })

  it('a job without a time limit or with an unknown key is a fault', () => {
    const jobs = { gate: { 'runs-on': 'x', steps: [] } }
    expect(z.safeParse(WORKFLOW, { ...gate, jobs }).success).toBe(false)
    expect(z.safeParse(WORKFLOW, { ...gate, defaults: {} }).success).toBe(false)
  })

  it('each line that no page has is used', () => {
    const lines = NAMES.flatMap((name) => listRunLines(readWorkflow(name)))
    expect(Object.keys(OTHER_LINES).filter((line) => !lines.includes(line))).toEqual([])
  })

  it.each(
    NAMES.flatMap((name) =>
      listSteps(readWorkflow(name)).flatMap(({ run }) => (run === undefined ? [] : [[name, run] as const])),
    ),
  )('a command of %s is valid shell: %s', (_name, run) => {
    expect(spawnSync('sh', ['-n'], { input: run, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })
})

describe('the gate', () => {
  it('runs .ci/run and nothing else on each push and pull request, and may only read', () => {
    expect(Object.keys(gate.on).sort()).toEqual(['pull_request', 'push'])
    expect(listRunLines(gate)).toEqual(['.ci/run'])
    expect(gate.permissions).toEqual({ contents: 'read' })
    expect(gate.jobs.gate?.permissions).toBeUndefined()
  })

  it('has no secret, as it runs the code of pull requests', () => {
    expect(fs.readFileSync(join(FOLDER, 'gate.yml'), 'utf8')).not.toContain('secrets.')
  })
})

describe('the release workflow', () => {
  const { build, publish } = release.jobs

  it('begins with a tag of a version, and the job that runs code of packages can write nothing', () => {
    expect(release.on).toEqual({ push: { tags: ['v*'] } })
    expect(release.permissions).toEqual({})
    expect(build?.permissions).toEqual({ contents: 'read' })
    expect(publish?.permissions).toEqual({ contents: 'write', 'id-token': 'write', attestations: 'write' })
    expect(publish?.steps.some(({ run = '' }) => run.startsWith('npm '))).toBe(false)
  })

  it('gives the signing key to one step alone, and removes it after the release whatever happens', () => {
    const steps = build?.steps ?? []
    const isKeyStep = ({ env = {} }: (typeof steps)[number]) =>
      Object.values(env).some((value) => value.includes('secrets.'))
    const at = steps.findIndex(isKeyStep)
    const made = steps.findIndex(({ run }) => run === 'npm run release')
    const removed = steps.findIndex((step) => step.run === 'ssh-add -q -D' && step.if === 'always()')
    expect(listSteps(release).filter(isKeyStep)).toHaveLength(1)
    expect([at < made, made < removed]).toEqual([true, true])
    expect(steps[made]?.env?.MODEKEEP_RELEASE_KEY).toBe('/tmp/release-key.pub')
  })

  it('signs with the key of the agent, and can sign no more after the removal', () => {
    const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-agent-'))
    onTestFinished(() => fs.rmSync(top, { recursive: true }))
    execFileSync(requireProgram('ssh-keygen'), ['-q', '-t', 'ed25519', '-N', '', '-f', `${top}/key`])
    const [load = '', remove = ''] = (build?.steps ?? []).flatMap(({ run = '' }) =>
      run.includes('ssh-add') ? run : [],
    )
    const run = (script: string, input = '') =>
      spawnSync('sh', ['-ec', script.replaceAll('/tmp/', `${top}/`)], {
        env: {
          PATH: process.env.PATH,
          SSH_AUTH_SOCK: `${top}/release-agent`,
          SIGNING_KEY: fs.readFileSync(`${top}/key`, 'utf8').trimEnd(),
        },
        input,
        encoding: 'utf8',
      })
    const loaded = run(load)
    const [, agent = ''] = /SSH_AGENT_PID=(\d+)/.exec(loaded.stdout) ?? []
    onTestFinished(() => void process.kill(Number(agent)))
    expect(loaded).toMatchObject({ status: 0, stderr: '' })
    const sign = `ssh-keygen -Y sign -f /tmp/release-key.pub -n ${SIGNATURE_NAMESPACE}`
    expect(run(sign, 'sums').stdout).toContain('BEGIN SSH SIGNATURE')
    expect(run(remove).status).toBe(0)
    expect(run(sign, 'sums').status).not.toBe(0)
  })

  it('attests every file, and each bill of materials of a release', () => {
    const attested = (publish?.steps ?? [])
      .filter(({ uses }) => uses?.startsWith('actions/attest@'))
      .map((step) => step.with)
    const name = (suffix: string) => `dist/release/modekeep-\${{ steps.version.outputs.version }}-${suffix}`
    expect(attested).toEqual([
      { 'subject-path': 'dist/release/*' },
      ...['linux-amd64.tar.gz', 'linux-arm64.tar.gz', 'image.tar'].map((subject) => ({
        'subject-path': name(subject),
        'sbom-path': name(subject.replace(/\.tar(\.gz)?$/, '.cdx.json')),
      })),
    ])
  })

  it('publishes a draft', () => {
    expect(publish?.needs).toBe('build')
    expect(publish?.steps.at(-1)?.run).toContain('gh release create "$GITHUB_REF_NAME" --draft --verify-tag')
  })
})
