import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { provideClients } from '../../scripts/fetch/clients.ts'
import { getVerbForm } from '../../src/cli/commands/index.ts'
import { listOptionSpellings, type OptionName } from '../../src/cli/commands/options.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { PLUGIN, PLUGIN_COMPLETION, RECORDING, SHELL_CASES } from './fake-kubectl.ts'

let top: string
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-plugin-'))
  fs.writeFileSync(join(top, 'kubectl'), RECORDING, { mode: 0o755 })
  give('get.nodes', 'node-1\nnode-2\nmaster-1\n')
  give('get.namespaces', 'default\nshop\n')
  give('contexts', 'prod\narn:aws:eks:eu-west-1:1:cluster/a\n')
})
afterEach(() => fs.rmSync(top, { recursive: true }))

const give = (name: string, text: string) => fs.writeFileSync(join(top, name), text)

/** Returns the candidates without their descriptions, and the directive. */
function complete(words: string[], shell: readonly string[] = []): string[] {
  const [program = PLUGIN_COMPLETION, ...args] = [...shell, PLUGIN_COMPLETION, ...words]
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { PATH: `${top}:${process.env.PATH}`, TOP: top },
    timeout: 60_000,
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/\t.*/, ''))
}

const calls = () => (fs.existsSync(join(top, 'calls')) ? fs.readFileSync(join(top, 'calls'), 'utf8') : '')

describe.each(SHELL_CASES)('completion of kubectl modekeep in $name', ({ command, missing }) => {
  it.skipIf(missing).each<[words: string[], candidates: string[]]>([
    [[], ['status', 'doctor', 'logs', 'restore', 'any-volume', 'help', ':4']],
    [['re'], ['restore', ':4']],
    [
      ['any-volume', ''],
      ['check', ':4'],
    ],
    [
      ['any-volume', 'check', ''],
      ['default', 'shop', ':4'],
    ],
    [['any-volume', 'check', 'shop', ''], [':4']],
    [
      ['any-volume', '--json', '--context', 'prod', 'check', 's'],
      ['shop', ':4'],
    ],
    [
      ['status', '--node', ''],
      ['node-1', 'node-2', 'master-1', ':4'],
    ],
    [
      ['status', '--node', 'no'],
      ['node-1', 'node-2', ':4'],
    ],
    [
      ['status', '--node=ma'],
      ['master-1', ':4'],
    ],
    [
      ['status', '-n', 'd'],
      ['default', ':4'],
    ],
    [['logs', '-n', ''], [':4']],
    [['logs', '--timeout', ''], [':4']],
    [
      ['doctor', '--in', ''],
      ['default', 'shop', ':4'],
    ],
    [
      ['doctor', '--context', ''],
      ['prod', 'arn:aws:eks:eu-west-1:1:cluster/a', ':4'],
    ],
    [['doctor', '--kubeconfig', 'x'], [':0']],
    [['doctor', '--kubeconfig=x'], [':0']],
    [
      ['logs', '--f'],
      ['--follow', '--failed', ':4'],
    ],
    [['restore', '/srv'], [':4']],
    [['frobnicate', ''], [':4']],
  ])(`of %j prints %j${missing}`, (words, candidates) => {
    expect(complete(words, command)).toEqual(candidates)
  })
})

describe('completion of kubectl modekeep', () => {
  const hasNoCheck = spawnSync('shellcheck', ['--version']).status !== 0
  it.skipIf(hasNoCheck)(
    `has no shellcheck warning${hasNoCheck ? ' (skipped: needs shellcheck: apt-get install shellcheck)' : ''}`,
    () => {
      expect(spawnSync('shellcheck', [PLUGIN_COMPLETION], { encoding: 'utf8' })).toMatchObject({
        status: 0,
        stdout: '',
      })
    },
  )

  it('offers the verbs and options of the help of the plugin', () => {
    const help = spawnSync(PLUGIN, ['--help'], { encoding: 'utf8' }).stdout
    const verbs = [...help.matchAll(/^ {2}([a-z][a-z-]*) /gm)].map(([, verb]) => verb)
    expect(complete(['']).filter((word) => !/^(:|help$)/.test(word))).toEqual(verbs)
    const options = [...help.matchAll(/^ {2}.*?(?= {2}|$)/gm)].flatMap(([terms]) => terms.match(/--[a-z]+/g) ?? [])
    expect(options).toContain('--timeout')
    expect(complete(['status', '--'])).toEqual(expect.arrayContaining([...new Set(options)]))
  })

  /** Options of a node that the plugin refuses, and paths of files on a node. */
  const NOT_OFFERED = ['--format', '--output', '--prometheus', '--watch', '--config']
  it.each(['status', 'doctor', 'logs', 'restore'] as const)('offers the options that %s has on a node', (verb) => {
    const own = (Object.keys(getVerbForm(verb).options) as OptionName[])
      .flatMap(listOptionSpellings)
      .filter((option) => option.startsWith('--') && !NOT_OFFERED.includes(option))
    const offered = complete([verb, '--'])
    const ofPlugin = ['--context', '--kubeconfig', '--timeout', '--node', '--in', ':4']
    expect(offered.filter((word) => !ofPlugin.includes(word)).sort()).toEqual([...own].sort())
  })

  it('queries the cluster of the options before the word, for at most 3 s', () => {
    complete(['status', '--context=prod', '--kubeconfig', '/k', '--node', ''])
    expect(calls()).toMatch(/^--request-timeout=3s --context=prod --kubeconfig=\/k get nodes /)
  })

  it('runs no kubectl for verbs and options', () => {
    complete([''])
    complete(['status', '-'])
    expect(calls()).toBe('')
  })

  it('offers no names and reports nothing if the cluster does not respond', () => {
    give('failure.nodes', 'Unable to connect to the server: dial tcp: no route to host\n')
    expect(complete(['status', '--node', ''])).toEqual([':4'])
  })

  it('offers no name that a terminal or a shell takes for a command', () => {
    give('get.nodes', 'node-1\n\x1b[31mred\nb\u009b\nc\td\n$(id)\ne f\n-n\n')
    expect(complete(['status', '--node', ''])).toEqual(['node-1', ':4'])
  })
})

const noClients = explainUnavailable(provideClients)

describe.skipIf(noClients)(`completion of kubectl modekeep by a real kubectl${noClients && ` (${noClients})`}`, () => {
  it.each<[words: string[], reply: string]>([
    [['any-volume', 'c'], 'check\tclaims that can be mapped, and those that kubelet walks\n:4\n'],
    [['doctor', '--kubeconfig', ''], ':0\n'],
  ])('of %j is that of kubectl_complete-modekeep', (words, reply) => {
    const { kubectl } = provideClients()
    const env = { PATH: `${dirname(PLUGIN)}:${process.env.PATH}`, HOME: top }
    expect(spawnSync(kubectl, ['__complete', 'modekeep', ...words], { encoding: 'utf8', env }).stdout).toBe(reply)
  })
})
