import { beforeEach, describe, expect, it } from 'vitest'
import type { OperatorContext } from '../../src/cli/context.ts'
import { runOperatorCommand } from '../../src/cli/operate.ts'
import { FAULT_ENTRIES } from '../../src/errors/entries/index.ts'
import { createFault } from '../../src/errors/fault.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../helpers/tree.ts'

let stage: Stage
let directory: string
let streams: Record<1 | 2, string>
let interrupt: () => void
beforeEach(() => {
  stage = memoryStage()
  stage.config = { ...stage.config, logFile: `${stage.top}/log` }
  directory = `${stage.top}/volumes/data`
  makeTree(stage.fs, directory, SIX_FILES)
  streams = { 1: '', 2: '' }
  interrupt = () => {}
})

const world = (argv: string[], more: Partial<OperatorContext> = {}): OperatorContext => ({
  argv,
  env: {},
  versions: { version: '1.2.3', node: '26.0.0', glibc: '2.36-9', arch: 'x64' },
  host: stage.host,
  fs: stage.fs,
  diagnosis: {} as OperatorContext['diagnosis'],
  executable: undefined,
  isRoot: true,
  write: (text, to) => {
    streams[to] += text
    return true
  },
  writeBytes: async (bytes) => {
    streams[1] += Buffer.from(bytes).toString('latin1')
  },
  isTerminal: () => false,
  columns: () => undefined,
  rows: () => undefined,
  workingDirectory: () => stage.top,
  readConfig: async () => ({ file: '/etc/config.json', config: stage.config, faults: [] }),
  onInterrupt: (say) => {
    interrupt = say
    return { [Symbol.dispose]() {} }
  },
  watch: async () => {},
  exposeMetrics: async () => {},
  serveHealth: async () => ({ [Symbol.dispose]() {} }),
  answerCalls: () => ({ [Symbol.dispose]() {} }),
  metrics: async () => '',
  runInstaller: async () => 7,
  runPlugin: async () => 7,
  runMigration: async () => 7,
  runCsi: async () => 7,
  runNri: async () => 8,
  ...more,
})
const call = (argv: string[], more?: Partial<OperatorContext>) => runOperatorCommand(world(argv, more))

describe("an operator's verb", () => {
  it('prints results on stdout, writes one log line, and exits with status 0', async () => {
    expect(await call(['apply', 'volumes/data', '--fsgroup', '2000'])).toBe(0)
    expect(streams[2]).toBe('')
    expect(streams[1]).toContain(`${directory}: group 2000`)
    expect(new Set(Object.values(groups(listTree(stage.fs, directory))))).toEqual(new Set([2000]))
    const [line = ''] = stage.fs.readFileSync(stage.config.logFile, 'utf8').split('\n')
    expect(JSON.parse(line)).toMatchObject({ verb: 'apply', directory, outcome: 'Success' })
  })

  it.each([['plan', '--fsgroup', '2000'], ['restore', '--dry-run'], ['status'], ['gc', '--dry-run']])(
    'writes no line to the log if the verb only reads: %j',
    async (verb = '', ...options) => {
      expect(await call([verb, ...(verb === 'plan' || verb === 'restore' ? [directory] : []), ...options])).toBe(0)
      expect(stage.fs.existsSync(stage.config.logFile)).toBe(false)
    },
  )

  it('prints a message on stderr, and exits with status 2 for invalid arguments and with 1 for a failure', async () => {
    expect(await call(['applly'])).toBe(2)
    expect(streams).toEqual({
      1: '',
      2: 'modekeep: there is no verb "applly": did you mean apply? see "modekeep help" [usage]\n',
    })
    expect(await call(['restore', '/none'])).toBe(1)
    expect(streams[2]).toMatch(/\nmodekeep: directory "\/none" does not exist.*\n$/)
    const [line = ''] = stage.fs.readFileSync(stage.config.logFile, 'utf8').split('\n')
    expect(JSON.parse(line)).toMatchObject({ verb: 'restore', outcome: 'Failure', isRefused: true })
  })

  it('prints one JSON document on stdout with --json, also for a failure', async () => {
    expect(await call(['version', '--json'])).toBe(0)
    expect(JSON.parse(streams[1])).toEqual({
      apiVersion: 'modekeep/v1',
      kind: 'Version',
      version: '1.2.3',
      node: '26.0.0',
      glibc: '2.36-9',
      arch: 'x64',
    })
    streams[1] = ''
    expect(await call(['completion', 'bash', '--json'])).toBe(0)
    expect(JSON.parse(streams[1])).toMatchObject({ kind: 'Completion', shell: 'bash' })
    streams[1] = ''
    expect(await call(['applly', '--json'])).toBe(2)
    const { error, ...about } = JSON.parse(streams[1])
    expect(about).toEqual({ apiVersion: 'modekeep/v1', kind: 'Error' })
    expect(error).toContain('applly')
    expect(streams[2]).toBe('')
  })

  it('explain prints the meaning and the remedy of a code, also of a code in brackets, without root', async () => {
    for (const code of ['group-conflict', '[group-conflict]']) {
      streams[1] = ''
      expect(await call(['explain', code], { isRoot: false })).toBe(0)
      expect(streams[1]).toMatch(/^group-conflict: Another pod .*\n\nRemedy: Use `ownership: idmap` in both/s)
    }
    streams[1] = ''
    expect(await call(['explain', 'group-conflict', '--json'])).toBe(0)
    const { codes, ...about } = JSON.parse(streams[1])
    expect(about).toEqual({ apiVersion: 'modekeep/v1', kind: 'Explain' })
    expect(codes).toMatchObject([{ code: 'group-conflict', section: 'The group', cause: null }])
  })

  it('explain without a code lists every code, and completion offers every code without root', async () => {
    expect(await call(['explain'])).toBe(0)
    for (const code of FAULT_ENTRIES.keys()) expect(streams[1]).toContain(`\n  ${code} `)
    streams[1] = ''
    expect(await call(['completion', '--offer', 'codes'], { isRoot: false })).toBe(0)
    expect(streams[1].trim().split('\n')).toEqual([...FAULT_ENTRIES.keys()].sort())
  })

  it('explain of an unknown code exits with status 2 and suggests the nearest code', async () => {
    expect(await call(['explain', 'group-conflct'])).toBe(2)
    expect(streams[2]).toContain('there is no code "group-conflct": did you mean group-conflict?')
    expect(await call(['explain', 'group-conflict', 'secret'])).toBe(2)
    expect(streams[2]).toContain('explain takes one code, got also ["secret"]: name one')
  })

  it('needs root, except for help, version, the device plugin and migrate', async () => {
    for (const verb of ['status', 'logs', 'doctor']) expect(await call([verb], { isRoot: false })).toBe(1)
    expect(streams[2]).toContain('modekeep: status needs root: run it with sudo [command]\n')
    expect(await call(['migrate', 'pods.yaml'], { isRoot: false })).toBe(7)
    for (const verb of ['help', 'version']) expect(await call([verb], { isRoot: false })).toBe(0)
    expect(await call(['device-plugin'], { isRoot: false })).toBe(7)
  })

  it('is refused with an invalid configuration, and the message names every fault', async () => {
    const readConfig = async () => ({
      file: '/f',
      config: stage.config,
      faults: [createFault('config-invalid', 'one is wrong'), createFault('config-invalid', 'two is wrong')],
    })
    expect(await call(['status'], { readConfig })).toBe(1)
    expect(streams[2]).toBe('modekeep: one is wrong; two is wrong [config-invalid]\n')
  })

  it('prints the remaining records if the verb is interrupted, and nothing if the verb changes nothing', async () => {
    await call(['apply', directory, '--fsgroup', '2000'])
    interrupt()
    expect(streams[2]).toContain(`"modekeep restore ${directory}" puts it back`)
    streams[2] = ''
    await call(['status'])
    interrupt()
    expect(streams[2]).toBe('')
  })

  it('prints colour on a terminal, unless NO_COLOR or TERM=dumb is set', async () => {
    const isTerminal = (stream: 1 | 2) => stream === 1
    const colour = async (env: OperatorContext['env']) => {
      streams[1] = ''
      await call(['restore', directory, '--dry-run'], { env, isTerminal })
      await call(['gc', '--dry-run'], { env, isTerminal })
      return streams[1].includes('\x1b[')
    }
    expect([await colour({}), await colour({ NO_COLOR: '1' }), await colour({ TERM: 'dumb' })]).toEqual([
      true,
      false,
      false,
    ])
  })
})
