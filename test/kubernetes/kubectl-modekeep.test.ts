import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { OPERATOR_VERB_NAMES } from '../../src/cli/commands/index.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { formatJsonDocument } from '../../src/cli/output/output.ts'
import { PLUGIN, RECORDING, SHELL_CASES } from './fake-kubectl.ts'

let top: string
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-plugin-'))
  fs.writeFileSync(join(top, 'kubectl'), RECORDING, { mode: 0o755 })
})
afterEach(() => fs.rmSync(top, { recursive: true }))

const give = (name: string, text: string) => fs.writeFileSync(join(top, name), text)
const environment = () => ({ PATH: `${top}:${process.env.PATH}`, TOP: top, TMPDIR: top })

function call(args: string[], shell: string[] = []) {
  const [program = PLUGIN, ...words] = [...shell, PLUGIN, ...args]
  return spawnSync(program, words, { encoding: 'utf8', env: environment(), timeout: 60_000 })
}

const calls = () => fs.readFileSync(join(top, 'calls'), 'utf8').split('\n').filter(Boolean)

function commandOf(process: string): string {
  try {
    return fs.readFileSync(`/proc/${process}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

/** As the API server has it: node, node of the affinity, pod, start of the container, end of the pod, phase. */
function pods(...rows: [node: string, pod: string, more?: { affinity?: string; phase?: string; ends?: boolean }][]) {
  const lines = rows.map(([node, pod, { affinity = node, phase = 'Running', ends = false } = {}]) =>
    [node, affinity, pod, phase === 'Running' ? '2026-01-01T00:00:00Z' : '', ends ? '2026-01-02' : '', phase].join(
      '\t',
    ),
  )
  give('pods', `${lines.join('\n')}\n`)
}

const mount = (
  pod: string,
  more: Partial<StatusDocument['mounts'][number]> = {},
): StatusDocument['mounts'][number] => ({
  directory: `/var/lib/kubelet/pods/${pod}`,
  volume: 'v',
  pod,
  source: '/srv/data',
  fsType: 'bind',
  readOnly: false,
  group: 2000,
  ownership: 'walk',
  why: 'asked for',
  since: '2026-11-25T04:12:33.000Z',
  state: 'healthy',
  repair: 'none',
  hiddenSubmounts: null,
  reason: '',
  code: null,
  walk: null,
  unenforced: [],
  daemon: null,
  ...more,
})

const volume = (
  name: string,
  more: Partial<StatusDocument['volumes'][number]> = {},
): StatusDocument['volumes'][number] => ({
  volume: name,
  source: '/srv/data',
  group: 2000,
  groupAccess: 'keep',
  complete: true,
  left: null,
  restorePending: false,
  changed: null,
  skipped: null,
  name: null,
  mounts: 1,
  fault: null,
  walk: null,
  ...more,
})

const container = (name: string, more: Partial<StatusDocument['containers'][number]> = {}) => ({
  container: 'c0ffee',
  name: 'main',
  pod: 'shop/db-0',
  volume: name,
  destination: `/${name}`,
  source: '/pods/db',
  onDisk: 1500,
  group: 2000,
  isMember: true,
  state: 'mapped' as const,
  reason: '',
  since: null,
  ...more,
})

const status = (more: Partial<StatusDocument>): string =>
  formatJsonDocument<StatusDocument>({
    verb: 'status',
    mounts: [],
    volumes: [],
    containers: [],
    unrecorded: [],
    unreadable: [],
    ...more,
  })

describe.each(SHELL_CASES)('kubectl modekeep in $name', ({ name, command: shell, missing }) => {
  it.skipIf(missing)(`ends once all nodes have answered, before --timeout${missing}`, () => {
    const functions = fs.readFileSync(PLUGIN, 'utf8').replace('\nmain "$@"\n', '\n')
    const script = `${functions}
trap 'exit 143' TERM
work=$TOP timeout=40
for number in 1 2 3; do
  true &
  group=" $number:$!"
  sleep 0.1
  await
done`
    const { status, stderr } = spawnSync(shell[0] ?? 'sh', [...shell.slice(1), '-c', script], {
      encoding: 'utf8',
      env: environment(),
      timeout: 30_000,
      // bash reads a user's files where its input is a socket.
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(fs.readdirSync(top)).not.toContain('1.late')
  })

  it.skipIf(missing)(`prints one table of all nodes${missing}`, () => {
    pods(['node-1', 'mk-a'], ['node-long-2', 'mk-b'])
    // With busybox' awk too.
    if (name === 'busybox') fs.writeFileSync(join(top, 'awk'), '#!/bin/sh\nexec busybox awk "$@"\n', { mode: 0o755 })
    const odd = mount('shop/web-0', {
      source: '/srv/a  b"c\\d\x1b[31m',
      state: 'stale',
      reason: 'the source is gone: mount it',
    })
    give('mk-a.status', status({ mounts: [odd, mount('shop/web-1', { group: null, ownership: 'none' })] }))
    const volumes = [volume('ext4-1', { mounts: 0, restorePending: true })]
    const containers = [container('data'), container('nfs', { onDisk: null, state: 'without', reason: 'no rule' })]
    give('mk-b.status', status({ volumes, containers }))
    expect(call(['status'], [...shell])).toMatchObject({
      status: 0,
      stderr: '',
      stdout: `NODE         POD         SOURCE                   GROUP  OWNERSHIP  SINCE             STATE
node-1       shop/web-0  /srv/a  b"c\\d\\u001b[31m  2000   walk       2026-11-25 04:12  stale
node-1       shop/web-1  /srv/data                -      none       2026-11-25 04:12  healthy
node-long-2  -           -                        -      -          -                 nothing mounted

NODE         VOLUME  GROUP  MOUNTS  STATE            SOURCE
node-long-2  ext4-1  2000   0       restore pending  /srv/data

NODE         POD        CONTAINER  VOLUME  GROUP  ON DISK  STATE
node-long-2  shop/db-0  main       data    2000   1500     mapped
node-long-2  shop/db-0  main       nfs     2000   -        without

node-1, shop/web-0: stale: the source is gone: mount it
  do: "kubectl --namespace kube-system exec mk-a --container modekeep -- modekeep status" says what to do next
node-long-2, shop/db-0: no rule
`,
    })
  })
})

describe('kubectl modekeep', () => {
  const hasNoCheck = spawnSync('shellcheck', ['--version']).status !== 0
  it.skipIf(hasNoCheck)(
    `has no shellcheck warning${hasNoCheck ? ' (skipped: needs shellcheck: apt-get install shellcheck)' : ''}`,
    () => {
      expect(spawnSync('shellcheck', [PLUGIN], { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: '' })
    },
  )

  it('lists each verb in its help, and sends only verbs of modekeep to nodes', () => {
    const { status, stdout } = call(['--help'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^ {2}any-volume check /m)
    for (const verb of ['status', 'doctor', 'logs', 'restore'] as const) {
      expect(OPERATOR_VERB_NAMES).toContain(verb)
      expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, 'm'))
    }
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  it.each([
    ['an unknown verb', ['stauts'], 'there is no verb "stauts"'],
    ['a restore without a node', ['restore', '/srv/a'], 'name it with --node'],
    ['an option without a value', ['status', '--node'], '--node has no value'],
    ['an empty value', ['status', '--node='], '--node is empty'],
    ['another output format', ['status', '-o', 'wide'], '-o is for a node itself'],
    ['an invalid number of seconds', ['status', '--timeout', '1s'], '--timeout is "1s"'],
    ['JSON together with --follow on all nodes', ['logs', '--json', '-f'], 'are for one node'],
  ])('refuses %s with status 2, and queries no node', (_what, args, said) => {
    pods(['node-1', 'mk-a'])
    expect(call(args)).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(said) })
    expect(fs.existsSync(join(top, 'calls'))).toBe(false)
  })

  it('names each node that could not be queried and the reason, shows the others, and exits with 3', () => {
    pods(
      ['node-1', 'mk-a'],
      ['', 'mk-b', { affinity: 'node-2 node-2', phase: 'Pending' }],
      ['node-3', 'mk-c'],
      ['node-4', 'mk-d'],
    )
    give('mk-a.status', status({ mounts: [mount('a/b')] }))
    give('mk-c.down', '')
    give('mk-d.hangs', '')
    const { status: exit, stdout, stderr } = call(['status', '--timeout', '6'])
    expect(exit).toBe(3)
    expect(stdout).toMatch(/^node-1 +a\/b /m)
    expect(stderr.split('\n')).toEqual([
      'kubectl modekeep: node node-2 was not asked: its pod mk-b is Pending: "kubectl --namespace kube-system describe pod mk-b" says why',
      'kubectl modekeep: node node-3 was not asked: Error from server: error dialing backend: no route to host',
      'kubectl modekeep: node node-4 was not asked: no answer within 6 s',
      '',
    ])
    const lines = call(['status', '--timeout=6', '--json'])
      .stdout.trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([
      { node: 'node-1', document: { kind: 'Status' } },
      { node: 'node-2', error: expect.stringContaining('is Pending') },
      { node: 'node-3', error: expect.stringContaining('no route') },
      { node: 'node-4', error: 'no answer within 6 s' },
    ])
  })

  it('exits with 3 if nothing can be queried: no permission, no pod, no such node', () => {
    expect(call(['status'])).toMatchObject({ status: 3, stderr: expect.stringContaining('pods is forbidden') })
    give('pods', '')
    expect(call(['status', '--in', 'other'])).toMatchObject({
      status: 3,
      stderr: "kubectl modekeep: there is no pod of modekeep in namespace other: name the DaemonSet's with --in\n",
    })
    pods(['node-1', 'mk-a'])
    expect(call(['status', '--node', 'node-9'])).toMatchObject({
      status: 3,
      stderr: 'kubectl modekeep: node node-9 has no pod of modekeep in namespace kube-system\n',
    })
  })

  it("queries the newer of two pods of a node, in the given namespace, with the verb's own options", () => {
    pods(['node-1', 'mk-old', { ends: true }], ['node-1', 'mk-new'], ['node-2', 'mk-other'])
    give('mk-new.status', status({}))
    const options = ['--node=node-1', '--in', 'storage', '--context', 'prod', '--kubeconfig', '/k']
    expect(call(['status', 'shop/web-0', ...options, '--force'])).toMatchObject({ status: 0, stderr: '' })
    expect(calls()[0]).toMatch(
      /^--context=prod --kubeconfig=\/k get pods --namespace storage --selector app\.kubernetes\.io\/name=modekeep /,
    )
    expect(calls().slice(1)).toEqual([
      '--context=prod --kubeconfig=/k exec --namespace storage mk-new --container modekeep -- modekeep status --json shop/web-0 --force',
    ])
  })

  it("counts doctor's results for each node, prints faults and warnings with remedies, and exits with 1", () => {
    pods(['node-1', 'mk-a'], ['node-2', 'mk-b'])
    const finding = (level: string, text: string, remedy: string) => ({ area: 'state', level, text, remedy })
    const document = (findings: object[], faults: number) =>
      formatJsonDocument({ verb: 'doctor', findings, ok: 1, warnings: 0, faults })
    give('mk-a.doctor', document([finding('ok', 'fine', '')], 0))
    give('mk-b.doctor', document([finding('ok', 'fine', ''), finding('fault', 'it is full', 'make room')], 1))
    give('mk-b.doctor.status', '1')
    expect(call(['doctor'])).toMatchObject({
      status: 1,
      stdout: `NODE    OK  WARNINGS  FAULTS
node-1  1   0         0
node-2  1   0         1

node-2, state: fault: it is full
  do: make room
`,
    })
  })

  it('prints the refusal of a node', () => {
    pods(['node-1', 'mk-a'])
    give('mk-a.status', formatJsonDocument({ verb: 'error', error: 'the configuration is wrong: mend it' }))
    give('mk-a.status.status', '1')
    expect(call(['status'])).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('node-1: the configuration is wrong: mend it'),
    })
  })

  it('shows a named pod on the nodes that have the pod, and fails if no node has it', () => {
    pods(['node-1', 'mk-a'], ['node-2', 'mk-b'])
    const nothing = 'nothing of "a/b" is mounted or recorded on this node: "modekeep status" lists what is'
    for (const pod of ['mk-a', 'mk-b']) {
      give(`${pod}.status`, formatJsonDocument({ verb: 'error', error: nothing }))
      give(`${pod}.status.status`, '1')
    }
    expect(call(['status', 'a/b'])).toMatchObject({
      status: 1,
      stdout: '',
      stderr:
        'kubectl modekeep: what was named is on no node that was asked: "kubectl modekeep status" lists what is\n',
    })
    give('mk-b.status', status({ mounts: [mount('a/b')] }))
    give('mk-b.status.status', '0')
    const { status: exit, stdout, stderr } = call(['status', 'a/b'])
    expect([exit, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').slice(1)).toEqual([expect.stringMatching(/^node-2 +a\/b /), ''])
  })

  it.each([
    ['nothing', ''],
    ['a blank line', '\n'],
    ['half a document', status({ mounts: [mount('a/b')] }).slice(0, -20)],
    ['a document in another language', '<html>502 Bad Gateway</html>\n'],
    ['a word', 'null\n'],
    ['another document', formatJsonDocument({ verb: 'version', version: '1' })],
    ['a document without the requested fields', formatJsonDocument({ verb: 'status' })],
    ['a document with another end', '{"apiVersion":"modekeep/v1","kind":"Status","mounts":[}]\n'],
    ['two documents', status({}) + status({})],
  ])('exits with 3 and names the node whose answer is %s', (_what, text) => {
    pods(['node-1', 'mk-a'], ['node-2', 'mk-b'])
    give('mk-a.status', text)
    give('mk-b.status', status({ mounts: [mount('a/b')] }))
    const { status: exit, stdout, stderr } = call(['status'])
    expect(stderr).toBe('kubectl modekeep: node node-1 was not asked: its answer is not a whole document of modekeep\n')
    expect([exit, stdout.split('\n').slice(1)]).toEqual([3, [expect.stringMatching(/^node-2 +a\/b /), '']])
    const lines = call(['status', '--json']).stdout.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { node: 'node-1', error: 'its answer is not a whole document of modekeep' },
      { node: 'node-2', document: { kind: 'Status' } },
    ])
    give('mk-a.doctor', text)
    expect(call(['doctor', '--node', 'node-1'])).toMatchObject({ status: 3, stdout: '' })
  })

  it.each([
    ['logs of one node', ['logs', '--node', 'node-1'], 'mk-a.logs'],
    ['logs of all nodes', ['logs'], 'mk-a.logs'],
    ['a restore', ['restore', '/srv/a', '--node', 'node-1'], 'mk-a.restore'],
  ])('prints no control characters, and letters of all languages: %s', (_what, args, file) => {
    pods(['node-1', 'mk-a'])
    const unsafe = Buffer.from('\x1b[31m \u009b31m \u202e \u2066 \u061c', 'utf8')
    const text = Buffer.concat([
      Buffer.from('2026 '),
      unsafe,
      Buffer.from([0x20, 0x9b, 0x20]),
      Buffer.from('Größe 数据 😀'),
    ])
    fs.writeFileSync(join(top, file), Buffer.concat([text, Buffer.from('\n')]))
    const { status: exit, stdout } = call(args)
    expect(exit).toBe(0)
    expect(stdout).toMatch(/2026 \[31m \?31m \? \? \? \? Größe 数据 😀\n$/)
  })

  it('sorts the lines of all logs by time, each with its node', () => {
    pods(['node-1', 'mk-a'], ['node-2', 'mk-b'])
    give(
      'mk-a.logs',
      '2026-01-01T00:00:01.000Z info  mount\n2026-01-01T00:00:03.000Z info  b\n2026-01-01T00:00:03.000Z info  a\n',
    )
    give('mk-b.logs', '2026-01-01T00:00:02.000Z info  unmount\n')
    const { status: exit, stdout } = call(['logs', '-n', '5'])
    expect([exit, stdout]).toEqual([
      0,
      'node-1  2026-01-01T00:00:01.000Z info  mount\nnode-2  2026-01-01T00:00:02.000Z info  unmount\nnode-1  2026-01-01T00:00:03.000Z info  b\nnode-1  2026-01-01T00:00:03.000Z info  a\n',
    ])
    expect(calls().at(-1)).toMatch(/ modekeep logs -n 5$/)
  })

  it('follows all logs until a signal ends the plugin, and leaves no process and no file', async () => {
    pods(['node-1', 'mk-a'], ['node-2', 'mk-b'])
    give(
      'kubectl',
      RECORDING.replace(
        '[ ! -e "$TOP/$pod.hangs" ]',
        '[ "$verb" != logs ] || { echo "line of $pod"; exec sleep 301; }\n[ ! -e "$TOP/$pod.hangs" ]',
      ),
    )
    const plugin = spawn(PLUGIN, ['logs', '--follow'], { env: environment() })
    let text = ''
    const both = new Promise<void>((done) => {
      plugin.stdout.on('data', (chunk) => {
        text += chunk
        if (text.split('\n').length > 2) done()
      })
    })
    await both
    const ended = new Promise((done) => plugin.on('close', done))
    plugin.kill('SIGTERM')
    await ended
    expect(text.trim().split('\n').sort()).toEqual(['node-1  line of mk-a', 'node-2  line of mk-b'])
    expect(fs.readdirSync(top).filter((entry) => entry.startsWith('kubectl-modekeep.'))).toEqual([])
    const commands = fs
      .readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(commandOf)
    expect(commands).not.toContain('sleep\x00301\x00')
  })

  it('prints the output of restore and exits with its status', () => {
    pods(['node-1', 'mk-a'])
    give('mk-a.restore', 'put back\n')
    give('mk-a.restore.status', '1')
    expect(call(['restore', '/srv/my data', '--node', 'node-1', '--dry-run'])).toMatchObject({
      status: 1,
      stdout: 'put back\n',
    })
    expect(calls().slice(1)).toEqual([
      'exec --namespace kube-system mk-a --container modekeep -- modekeep version',
      'exec --namespace kube-system mk-a --container modekeep -- modekeep restore /srv/my data --dry-run',
    ])
    give('mk-a.down', '')
    expect(call(['restore', '/srv/a', '--node', 'node-1'])).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('no route'),
    })
  })

  it('parses a long document with a thousand mounts', () => {
    pods(['node-1', 'mk-a'])
    const mounts = Array.from({ length: 1000 }, (_, at) =>
      mount(`shop/web-${at}`, { source: `/srv/},{"${at}/${'x'.repeat(300)}` }),
    )
    give('mk-a.status', status({ mounts }))
    const { stdout } = call(['status'])
    expect(stdout.split('\n')).toHaveLength(1002)
  })
})
