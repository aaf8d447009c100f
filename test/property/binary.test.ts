import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isFlexVolumeVerb } from '../../src/frontends/flexvolume/protocol.ts'
import { MODEKEEP } from '../binary/modekeep.ts'
import { isRoot } from '../helpers/stage.ts'
import { listTree, makeTree, SIX_FILES } from '../helpers/tree.ts'
import { type Call, kubeletCalls, operatorCalls } from './calls.ts'
import { corpus, corpusOf } from './corpus.ts'
import { holds } from './holds.ts'
import { textOf } from './option-texts.ts'
import { entriesOf, expectNoSecret, type Secret, secrets } from './secrets.ts'
import { anyText } from './texts.ts'

const why = !isRoot ? 'mounts need root; run "sudo npm test"' : !fs.existsSync(MODEKEEP) ? 'run "npm run build"' : ''

const top = fs.mkdtempSync(`${tmpdir()}/modekeep-property-`)
const directory = `${top}/pods/8c03/volumes/modekeep~fs/v`
const STACK = /\n\s*at |node:internal|\.[cm]?[jt]s:\d|Error:.*\n/

/** Arguments travel as bytes, which no string of a script could hold. */
function run(call: Call, config = `${top}/config.json`): { out: string; err: string; code: number | null } {
  fs.writeFileSync(`${top}/argv`, Buffer.concat(call.flatMap((one) => [one, Buffer.of(0)])))
  const xargs = ['-0', '-x', '-s', '1000000', '-a', `${top}/argv`, 'sh', '-c', 'exec "$0" "$@"', MODEKEEP]
  const { status, stdout, stderr, error } = spawnSync('xargs', xargs, {
    env: { PATH: process.env.PATH, MODEKEEP_CONFIG: config },
    encoding: 'utf8',
    timeout: 600_000,
    cwd: top,
  })
  if (error) throw error
  // xargs tells of any exit status but 0 by 123.
  return { out: stdout, err: stderr, code: status }
}

/** As kubelet reads it: one JSON document on both streams together, exit status 0. */
function answered(call: Call, config?: string): { status: string; message?: string } {
  const { out, err, code } = run(call, config)
  expect(err).toBe('')
  expect(code).toBe(0)
  expect(out.indexOf('\n')).toBe(out.length - 1)
  const reply = JSON.parse(out)
  expect(['Success', 'Failure', 'Not supported']).toContain(reply.status)
  if (reply.status !== 'Success') expect(reply.message).toMatch(/.{20}/)
  if (reply.message !== undefined) {
    expect(Buffer.byteLength(reply.message)).toBeLessThan(1024)
    expect(reply.message).not.toMatch(STACK)
  }
  return reply
}

/** Everything a refused call must leave as it is; times of the volume's inodes among it. */
function world(): unknown {
  const mounts = fs
    .readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(top))
  const records = fs.existsSync(`${top}/state/mounts`) ? fs.readdirSync(`${top}/state/mounts`) : []
  return {
    mounts,
    records,
    volumes: listTree(fs, `${top}/volumes`),
    pod: fs.readdirSync(directory),
    none: fs.existsSync(`${top}/none`),
  }
}

function expectAnswer(call: Call): string {
  const before = world()
  const { status } = answered(call)
  if (call[0]?.toString() === 'mount' && status === 'Success') {
    const where = call[1] ?? Buffer.alloc(0)
    expect(answered([Buffer.from('unmount'), where])).toEqual({ status: 'Success' })
    // A group was given: that is what was asked for.
    makeVolumes()
  } else expect(world()).toEqual(before)
  return status
}

/** Of a word that kubelet cannot send, or of none: nothing that looks like an answer to kubelet, and nothing is changed. */
function expectWords(call: Call): void {
  const before = world()
  const { out, err, code } = run(call)
  // xargs tells of any exit status but 0 by 123.
  expect([out.startsWith('modekeep '), err.startsWith('modekeep: there is no verb '), code]).toEqual(
    call.length === 0 ? [true, false, 0] : [false, true, 123],
  )
  expect(out + err).not.toMatch(STACK)
  expect(world()).toEqual(before)
}

function makeVolumes(): void {
  fs.rmSync(`${top}/volumes`, { recursive: true, force: true })
  fs.rmSync(`${top}/state`, { recursive: true, force: true })
  for (const name of ['data', 'a b', 'é']) makeTree(fs, `${top}/volumes/${name}`, [...SIX_FILES, 'dir a/b 0755'])
}

describe.skipIf(why !== '')(`the executable${why && ` (skipped: ${why})`}`, () => {
  beforeAll(() => {
    fs.mkdirSync(directory, { recursive: true })
    fs.mkdirSync(`${top}/state`)
    makeVolumes()
    const config = { stateDir: `${top}/state`, logFile: `${top}/log`, allow: [{ sources: [`${top}/volumes/*`] }] }
    fs.writeFileSync(`${top}/config.json`, JSON.stringify(config))
  })
  afterAll(() => fs.rmSync(top, { recursive: true, force: true }))

  it.each(corpusOf<string[]>('argv'))(
    'replies to a call of kubelet with one JSON document, and to other arguments with a sentence: %s',
    (_name, argv) => {
      const call = argv.map((text) => Buffer.from(text.replaceAll('@', top), 'latin1'))
      if (isFlexVolumeVerb(argv[0])) expectAnswer(call)
      else expectWords(call)
    },
  )

  it.each(corpus('options'))('replies to a mount with options from the corpus: %s', (_name, content) => {
    const text = content.toString().replaceAll('/srv/volumes', `${top}/volumes`)
    expectAnswer([Buffer.from('mount'), Buffer.from(directory), Buffer.from(text)])
  })

  it.each(corpus('config'))('replies to every call with a configuration from the corpus: %s', (_name, content) => {
    fs.writeFileSync(`${top}/damaged.json`, content)
    const at = [Buffer.from(directory), Buffer.from('{"source":"/nowhere"}')]
    expect(answered([Buffer.from('init')], `${top}/damaged.json`).status).toBe('Success')
    expect(answered([Buffer.from('mount'), ...at], `${top}/damaged.json`).status).toBe('Failure')
  })

  it('replies to any call of kubelet with one JSON document, and a refused call changes nothing', () => {
    const seen: Record<string, number> = {}
    const called = (call: Call) => {
      const status = expectAnswer(call)
      seen[status] = (seen[status] ?? 0) + 1
    }
    holds(kubeletCalls(top), called, 150)
    expect(Object.keys(seen).sort()).toEqual(['Failure', 'Not supported', 'Success'])
  })

  it('replies to a command in words or JSON, with status 0, 1 or 2, and never with a stack trace', () => {
    holds(
      operatorCalls(top),
      (call) => {
        const { out, err, code } = run(call)
        expect([0, 123]).toContain(code)
        expect(out + err).not.toMatch(STACK)
        if (code === 0) expect(err).toBe('')
        const isJson = call.some((word) => word.toString() === '--json')
        if (isJson && !/^(help|version|-|modekeep \d)/.test(out + call[0]) && out.startsWith('{')) JSON.parse(out)
        if (code === 123 && !isJson) expect(err).toMatch(/^modekeep: .{10}/)
        if (code === 123 && isJson) expect(JSON.parse(out)).toBeDefined()
      },
      60,
    )
  })

  it('prints no secret with any other options', () => {
    const others = fc.array(fc.tuple(fc.constantFrom('source', 'kubernetes.io/fsType', 'x', 'mountOptions'), anyText))
    holds(
      fc.tuple(secrets, others, fc.boolean()),
      ([list, rest, isCut]) => {
        const kept = list.filter(({ key }, index) => list.findIndex((other) => other.key === key) === index)
        const source: [string, string] = ['source', `${top}/volumes/data`]
        const text = textOf([...entriesOf(kept), ...(rest.length > 0 ? rest : [source])]).replaceAll('\\u0000', '')
        expectSilence(isCut ? text.slice(0, -1) : text, kept)
      },
      40,
    )
  })

  function expectSilence(text: string, list: readonly Secret[]): void {
    const mount = [Buffer.from('mount'), Buffer.from(directory), Buffer.from(text)]
    const { status, ...said } = answered(mount)
    const log = fs.existsSync(`${top}/log`) ? fs.readFileSync(`${top}/log`, 'utf8') : ''
    const records = filesBelow(`${top}/state`).map((path) => fs.readFileSync(path, 'latin1'))
    expectNoSecret([JSON.stringify(said), log, ...records].join('\n'), list)
    if (status === 'Success') expect(answered([Buffer.from('unmount'), Buffer.from(directory)]).status).toBe('Success')
    fs.rmSync(`${top}/log`, { force: true })
  }
})

function filesBelow(path: string): string[] {
  const entries = fs.readdirSync(path, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`)
}
