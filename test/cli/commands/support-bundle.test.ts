import { execFileSync } from 'node:child_process'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  runSupportBundle,
  type SupportBundleCommand,
  type SupportBundleContext,
  type SupportBundleDocument,
  supportBundleVerb,
} from '../../../src/cli/commands/support-bundle.ts'
import type { OutputLine } from '../../../src/cli/output/output.ts'
import { collectBundle } from '../../../src/cli/support-bundle/bundle.ts'
import { createFault } from '../../../src/errors/fault.ts'
import type { NodeDiagnosis } from '../../../src/kernel/linux/diagnosis.ts'
import type { Session } from '../../../src/state/session.ts'
import { splitLine } from '../../helpers/line.ts'
import { memoryStage, type Stage } from '../../helpers/stage.ts'

const CANARY = 'hunter2'

const DIAGNOSIS: NodeDiagnosis = {
  features: () => [],
  release: () => '6.12.0',
  hostName: () => '../node 1.example',
  selfTest: () => [],
  findProgram: (program) => `/usr/bin/${program}`,
  space: () => ({ bytes: 2 ** 30, inodes: 1_000_000 }),
  isSameFile: () => true,
  isListening: () => false,
}

let stage: Stage
let written: Buffer[]
let printed: string[]
beforeEach(() => {
  stage = memoryStage()
  stage.config = { ...stage.config, logFile: `${stage.top}/log/modekeep.log` }
  stage.fs.mkdirSync(`${stage.top}/log`)
  stage.fs.mkdirSync(`${stage.top}/work`)
  stage.fs.writeFileSync(`${stage.top}/config.json`, '{}')
  written = []
  printed = []
})

const context = (more: Partial<SupportBundleContext> = {}): SupportBundleContext => ({
  diagnosis: DIAGNOSIS,
  configuration: { file: `${stage.top}/config.json`, faults: [] },
  executable: undefined,
  versions: { version: '1.2.3', node: '26.0.0', glibc: '2.36-9', arch: 'x64' },
  isTerminal: false,
  write: async (bytes) => void written.push(Buffer.from(bytes)),
  interrupted: new AbortController().signal,
  print: (lines) => printed.push(...lines.map((line) => splitLine(line).text ?? '')),
  ...more,
})

const output = () => `${stage.top}/work/bundle.tar`
const bundle = (
  command: Partial<SupportBundleCommand> = {},
  more: Partial<SupportBundleContext> = {},
  session: Partial<Session> = {},
): Promise<SupportBundleDocument> =>
  runSupportBundle(
    { ...stage.session(), ...session },
    { verb: 'support-bundle', output: output(), directory: '', ...command },
    context(more),
  )

/** Lists an archive, and extracts its files, by the machine's tar. */
function extract(archive: Buffer): Map<string, string> {
  const names = execFileSync('tar', ['-tf', '-'], { input: archive, encoding: 'utf8' }).trim().split('\n')
  return new Map(
    names.map((name) => [
      name.replace(/^[^/]*\//, ''),
      execFileSync('tar', ['-xOf', '-', name], { input: archive, encoding: 'utf8', maxBuffer: 1 << 26 }),
    ]),
  )
}
const readBundle = (file = output()) => stage.fs.readFileSync(file) as Buffer
const shown = (lines: readonly OutputLine[]) => lines.map((line) => splitLine(line).text)

describe('support-bundle', () => {
  it('writes the versions, doctor, status, configuration, log, mount table, records and journal sizes into a tar file', async () => {
    const source = `${stage.top}/volumes/data`
    stage.fs.mkdirSync(source)
    await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    stage.fs.writeFileSync(stage.config.logFile, '{"verb":"mount","outcome":"Success"}\nno JSON\n')
    const document = await bundle()
    const archive = readBundle()
    const files = extract(archive)
    const json = (name: string) => JSON.parse(files.get(name) ?? '')
    expect(document).toMatchObject({
      outcome: 'written',
      file: output(),
      bytes: archive.length,
      errors: [],
      limits: [],
    })
    expect(document.files.map(({ path }) => path)).toEqual([...files.keys()])
    for (const { path, bytes } of document.files) expect(Buffer.byteLength(files.get(path) ?? ''), path).toBe(bytes)
    expect(json('versions.json')).toMatchObject({ version: '1.2.3', glibc: '2.36-9', kernel: '6.12.0' })
    expect(json('doctor.json')).toMatchObject({ apiVersion: 'modekeep/v1', kind: 'Doctor' })
    expect(json('status.json')).toMatchObject({ kind: 'Status', mounts: [{ directory: stage.podDirectory('a') }] })
    expect(json('configuration.json')).toMatchObject({ text: '{}', faults: [], effective: { tmpfsMaxSize: '64m' } })
    expect(files.get('log.jsonl')).toBe('{"verb":"mount","outcome":"Success"}\nno JSON\n')
    expect(files.get('mountinfo')).toBe(stage.host.mounts.table())
    expect(json('records/mounts/1.json')).toMatchObject({ directory: stage.podDirectory('a'), source })
    expect(json('records/ownership/1.json')).toMatchObject({ group: 2000 })
    expect(json('journals.json')).toMatchObject([
      { files: expect.arrayContaining([{ name: 'journal.db', bytes: expect.any(Number) }]) },
    ])
    expect(json('contents.json').files).toEqual(document.files.slice(1))
  })

  it('lists every file with its size and source before it writes the first byte', async () => {
    let listed: string[] = []
    const write = async () => {
      listed = [...printed]
    }
    const { files } = await bundle({ output: '-' }, { write })
    expect(listed.slice(2)).toHaveLength(files.length)
    for (const { path, bytes, source } of files) {
      expect(
        listed.some((line) => [path, `${bytes}`, source].every((part) => line.includes(part))),
        path,
      ).toBe(true)
    }
  })

  it('has no secret of a log, configuration, record or mount table', async () => {
    const secret = { password: CANARY, mountOptions: `vers=3.0,password=${CANARY}`, source: `//bob:${CANARY}@server/x` }
    const text = JSON.stringify(secret)
    const { stateDir, logFile } = stage.config
    stage.fs.mkdirSync(`${stateDir}/mounts/%2Fa`, { recursive: true })
    stage.fs.mkdirSync(`${stateDir}/staging/a`, { recursive: true })
    stage.fs.writeFileSync(`${stateDir}/mounts/%2Fa/record.json`, text)
    stage.fs.writeFileSync(`${stateDir}/metrics.json`, `{"damaged": ${text}`)
    stage.fs.writeFileSync(`${stateDir}/staging/a/secret.json`, `"${CANARY}"`)
    stage.fs.writeFileSync(logFile, `${text}\n${JSON.stringify({ error: `mount failed: ${text}` })}\n`)
    stage.fs.writeFileSync(`${stage.top}/config.json`, JSON.stringify({ smbPassword: CANARY, allow: [secret] }))
    const table = `36 35 0:50 / /mnt rw - cifs //bob:${CANARY}@server/x rw,username=bob,password=${CANARY}\n`
    const host = { ...stage.host, mounts: { ...stage.host.mounts, table: () => table + stage.host.mounts.table() } }
    const faults = [createFault('config-invalid', `key "smbPassword" is unknown: password=${CANARY}`)]
    await bundle({}, { configuration: { file: `${stage.top}/config.json`, faults } }, { host })
    const archive = readBundle()
    expect(archive.includes(CANARY)).toBe(false)
    const files = extract(archive)
    for (const name of [
      'log.jsonl',
      'mountinfo',
      'configuration.json',
      'records/mounts/1.json',
      'records/node/1.json',
    ]) {
      expect(files.get(name), name).toContain('[redacted]')
    }
  })

  it('has at most 2 MiB of the newest lines of the log and its rotated files', async () => {
    const { logFile } = stage.config
    const line = (file: number, number: number) => `{"file":${file},"number":${number},"text":"${'x'.repeat(1000)}"}\n`
    for (const [at, name] of [logFile, `${logFile}.1`, `${logFile}.2`].entries()) {
      stage.fs.writeFileSync(name, Array.from({ length: 1500 }, (_, number) => line(at, number)).join(''))
    }
    const { files } = await bundle()
    const log = extract(readBundle()).get('log.jsonl') ?? ''
    const lines = log
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text))
    expect(files.find(({ path }) => path === 'log.jsonl')).toMatchObject({ isCut: true })
    expect(log.length).toBeGreaterThan(1.9 * 2 ** 20)
    expect(log.length).toBeLessThanOrEqual(2 ** 21)
    expect(lines.at(-1)).toMatchObject({ file: 0, number: 1499 })
    expect(lines[0]).toMatchObject({ file: 1 })
    expect(printed.find((text) => text.includes('log.jsonl'))).toContain('(a part)')
  })

  it('has a limited number and size of records, and names what is left out', async () => {
    const { stateDir } = stage.config
    for (let at = 0; at < 250; at++) {
      const directory = `${stateDir}/mounts/%2F${String(at).padStart(4, '0')}`
      stage.fs.mkdirSync(directory, { recursive: true })
      stage.fs.writeFileSync(`${directory}/record.json`, `{"at":${at}}`)
    }
    stage.fs.writeFileSync(`${stateDir}/metrics.json`, `"${'x'.repeat(2 ** 19)}"`)
    const document = await bundle()
    expect(document.files.filter(({ path }) => path.startsWith('records/'))).toHaveLength(200)
    expect(document.limits).toEqual([{ source: `${stateDir}/mounts`, leftOut: 50 }])
    expect(document.errors).toMatchObject([
      { source: `${stateDir}/metrics.json`, error: expect.stringContaining('EFBIG') },
    ])
    const errors = extract(readBundle()).get('errors.txt') ?? ''
    expect(errors).toContain(`${stateDir}/mounts: 50 files are left out\n`)
    expect(errors).toContain('EFBIG')
    expect(shown(supportBundleVerb.lines(document))[1]).toBe(`left out of ${stateDir}/mounts: 50 files`)
  })

  it('is partly written if parts fail, and errors.txt names each of them', async () => {
    const session = stage.session()
    const host = {
      ...session.host,
      mounts: {
        ...session.host.mounts,
        table: () => {
          throw new Error(`no table, password=${CANARY}`)
        },
      },
    }
    stage.fs.mkdirSync(`${stage.top}/log/modekeep.log`)
    const document = await bundle({}, {}, { host })
    const errors = extract(readBundle()).get('errors.txt') ?? ''
    expect(document.outcome).toBe('partly written')
    expect(supportBundleVerb.hasTrouble?.(document)).toBe(true)
    expect(errors).toContain('/proc/self/mountinfo: no table, password=[redacted]\n')
    expect(errors).toContain(`${stage.config.logFile}: `)
    expect(extract(readBundle()).has('configuration.json')).toBe(true)
    expect(shown(supportBundleVerb.lines(document))[0]).toContain('partly written')
  })

  it('has the effective configuration and its faults if the file of the configuration cannot be read', async () => {
    const file = `${stage.top}/log`
    const faults = [createFault('file-access', `${file} is no regular file`)]
    const { errors } = await bundle({}, { configuration: { file, faults } })
    expect(errors).toMatchObject([{ source: file, error: expect.stringContaining('EINVAL') }])
    expect(JSON.parse(extract(readBundle()).get('configuration.json') ?? '')).toMatchObject({
      text: null,
      faults: [{ code: 'file-access' }],
      effective: { stateDir: stage.config.stateDir },
    })
  })

  it('names a part that never ends as an error, and has the parts after it', async () => {
    const parts = [
      { source: 'status', read: () => new Promise<never>(() => {}) },
      { source: 'log', read: () => [{ path: 'log.jsonl', source: '/log', text: '' }] },
    ]
    expect(await collectBundle(parts, 20)).toEqual({
      files: [{ path: 'log.jsonl', source: '/log', text: '' }],
      errors: [{ source: 'status', error: 'no result within 0.02 s' }],
      limits: [],
    })
  })

  it('writes to a new file of the working directory that is named after the node and the time, with mode 0600', async () => {
    const { file } = await bundle({ output: undefined, directory: `${stage.top}/work` })
    expect(file).toMatch(/^\/node\/work\/modekeep-support--node-1-example-\d{8}T\d{6}Z\.tar$/)
    expect(stage.fs.statSync(file).mode & 0o7777).toBe(0o600)
    expect(stage.fs.readdirSync(`${stage.top}/work`)).toHaveLength(1)
  })

  it.each([
    ['a file', (path: string) => stage.fs.writeFileSync(path, 'mine')],
    ['a link to a file', (path: string) => link(path, 'mine')],
    ['a link to nothing', (path: string) => link(path)],
    ['a directory', (path: string) => stage.fs.mkdirSync(path)],
  ])('refuses an output where %s is, and leaves it as it is', async (_what, make) => {
    make(output())
    const before = stage.fs.readdirSync(`${stage.top}/work`)
    await expect(bundle()).rejects.toThrow(/bundle\.tar" (is there already: name another|is no regular file: name an)/)
    expect(stage.fs.readdirSync(`${stage.top}/work`)).toEqual(before)
    expect(stage.fs.existsSync(`${stage.top}/target`) && stage.fs.readFileSync(`${stage.top}/target`, 'utf8')).not.toBe(
      '',
    )
  })

  it('writes to stdout if the output is "-", unless stdout is a terminal', async () => {
    const document = await bundle({ output: '-' })
    expect(document).toMatchObject({ file: '-', bytes: Buffer.concat(written).length })
    expect(extract(Buffer.concat(written)).has('doctor.json')).toBe(true)
    expect(printed[0]).toContain('Files in the bundle.')
    await expect(bundle({ output: '-' }, { isTerminal: true })).rejects.toThrow('stdout is a terminal: name a file')
    expect(supportBundleVerb.writesStdout?.({ verb: 'support-bundle', output: '-', directory: '' })).toBe(true)
  })

  it('of a node without records or a log has all other parts, and is complete', async () => {
    const { outcome, files } = await bundle()
    expect(outcome).toBe('written')
    expect(files.map(({ path }) => path)).toEqual([
      'contents.json',
      'versions.json',
      'doctor.json',
      'status.json',
      'configuration.json',
      'log.jsonl',
      'mountinfo',
      'journals.json',
    ])
  })
})

function link(path: string, content?: string): void {
  const target = `${stage.top}/target`
  if (content !== undefined) stage.fs.writeFileSync(target, content)
  stage.fs.symlinkSync(target, path)
}
