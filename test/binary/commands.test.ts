import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OPERATOR_VERB_NAMES } from '../../src/cli/commands/index.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../helpers/tree.ts'

const title = (name: string) => `${name}${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const PAGE = fs.readFileSync(resolve(import.meta.dirname, '../../docs/commands.md'), 'utf8')

/** @param before a program that runs it */
function call(
  node: BinaryNode,
  args: readonly string[],
  env: Record<string, string> = {},
  before: readonly string[] = [],
) {
  const [program = BINARY, ...rest] = [...before, BINARY, ...args]
  const { stdout, stderr, status, error } = spawnSync(program, rest, {
    env: { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json`, ...env },
    encoding: 'utf8',
    timeout: 600_000,
  })
  if (error) throw error
  return { stdout, stderr, status }
}

/** Runs a command on a terminal of its own, as script(1) makes one. */
function onTerminal(node: BinaryNode, command: string, env: Record<string, string> = {}) {
  const { stdout, status } = spawnSync('script', ['-qec', `${BINARY} ${command}`, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', MODEKEEP_CONFIG: `${node.top}/config.json`, ...env },
    encoding: 'utf8',
    timeout: 600_000,
  })
  return { text: stdout, status }
}

function arranged(): { node: BinaryNode; source: string } {
  const node = new BinaryNode()
  const source = `${node.volumes}/data`
  makeTree(fs, source, [...SIX_FILES, 'link out /etc'])
  return { node, source }
}

const mountOptions = (source: string, more: Record<string, string> = {}) =>
  JSON.stringify({
    source,
    ownership: 'walk',
    'kubernetes.io/fsGroup': '2000',
    'kubernetes.io/pod.name': 'cart',
    'kubernetes.io/pod.namespace': 'shop',
    ...more,
  })

/** `differences[].before.gid`, …: every key of a document that has no keys of its own below it. */
function keysOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : value.flatMap((one) => keysOf(one, `${at}[]`))
  if (typeof value !== 'object' || value === null) return [at]
  const isByName = at === 'report.left'
  return Object.entries(value).flatMap(([key, below]) =>
    keysOf(below, isByName ? `${at}{}` : at === '' ? key : `${at}.${key}`),
  )
}

function documentedKeys(verb: string): string[] {
  const section = PAGE.split('\n### ').find((text) => text.startsWith(`${verb}\n`)) ?? ''
  const cells = section.split('\n').flatMap((line) => /^\| (`.*?`) \|/.exec(line)?.[1] ?? [])
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, key]) => key ?? ''))
}

describe.skipIf(!isRoot)(title('operator commands'), () => {
  it('commands of the executable print help with an example despite any other arguments', () => {
    const node = new BinaryNode()
    for (const verb of OPERATOR_VERB_NAMES) {
      const said = call(node, [verb, '--help'])
      expect(said).toMatchObject({ stderr: '', status: 0 })
      expect(said.stdout).toMatch(new RegExp(`^modekeep ${verb}[\\s\\S]*\\nExamples?:\\n {2}.*modekeep ${verb}`))
      // What these say is JSON in any case.
      if (!['device-plugin', 'csi', 'nri'].includes(verb)) expect(call(node, ['help', verb]).stdout).toBe(said.stdout)
    }
  })

  it('commands of the executable print JSON documents with the documented fields', async () => {
    const { node, source } = arranged()
    const found = new Map<string, Set<string>>()
    const json = (...args: string[]) => {
      const { stdout } = call(node, [...args, '--json'])
      const document = JSON.parse(stdout)
      expect(stdout).toBe(`${stdout.trim()}\n`)
      const verb = document.kind.replace(/(?<=.)[A-Z]/g, '-$&').toLowerCase()
      const keys = found.get(verb) ?? new Set()
      for (const key of keysOf(document)) keys.add(key)
      found.set(verb, keys)
      expect(document.apiVersion).toBe('modekeep/v1')
      return document
    }
    json('apply', source, '--fsgroup', '3000')
    json('plan', source, '--fsgroup', '2000')
    json('journal', 'export', source, '--output', `${node.top}/data.journal`)
    // A user's own change, which is left.
    fs.chmodSync(`${source}/test1`, 0o600)
    json('restore', source, '--dry-run')
    json('restore', source)
    expect(await node.call('mount', node.podDirectory('a'), mountOptions(source))).toEqual({
      status: 'Success',
      message: 'group 2000 was applied to 6 of 7, changed since by its user: 1 (first "test1")',
    })
    for (const verb of ['status', 'heal', 'doctor', 'gc', 'version', 'help']) json(verb)
    json('completion', 'zsh')
    fs.mkdirSync(`${node.state}/metrics.json`)
    json('support-bundle', '--output', `${node.top}/bundle.tar`)
    fs.rmdirSync(`${node.state}/metrics.json`)
    json('explain', 'secret')
    json('explain', 'disk-busy')
    const manifest = `${node.top}/volume.yaml`
    const options = '{networkPath: //a/b, mountOptions: "sec=krb5,_netdev", colour: red}'
    fs.writeFileSync(manifest, `flexVolume: {driver: fstab/cifs, options: ${options}}\n`)
    json('migrate', manifest)
    for (const verb of ['install', 'uninstall'])
      json(verb, '--dry-run', '--root', node.volumes, '--plugin-dir', '/plugins')
    for (const [verb, keys] of found) {
      const documented = documentedKeys(verb)
      // Null where there is nothing, and lists that are empty here.
      const isAbsent = (key: string) =>
        ['underWay', 'recorded', 'subPaths[]', 'walk', 'warnings[]'].includes(key) ||
        key.endsWith('?') ||
        /^(un(readable|recorded)|containers|limits)\[\]/.test(key)
      expect(
        [...keys].filter((key) => !documented.includes(key) && !documented.includes(`${key}?`)),
        verb,
      ).toEqual([])
      expect(
        documented.filter((key) => !keys.has(key) && !isAbsent(key)),
        verb,
      ).toEqual([])
    }
    expect([...found.keys()].sort()).toEqual(
      OPERATOR_VERB_NAMES.filter((verb) => PAGE.includes(`\n### ${verb}\n`)).sort(),
    )
    expect(found.size).toBe(16)
  })

  it('commands of the executable print colours on a terminal, and no escape sequences in a pipe or with NO_COLOR', () => {
    const node = new BinaryNode()
    expect(call(node, ['doctor']).stdout).not.toContain('\x1b')
    expect(onTerminal(node, 'doctor').text).toContain('\x1b[1mkernel\x1b[0m')
    expect(onTerminal(node, 'doctor', { NO_COLOR: '1' }).text).not.toContain('\x1b')
    expect(onTerminal(node, 'doctor --json').text).not.toContain('\x1b')
  })

  it('commands suggest the intended verb for a mistyped verb, on a terminal and in a pipe', () => {
    const node = new BinaryNode()
    const { text, status } = onTerminal(node, 'statsu')
    expect({ text: text.trim(), status }).toEqual({
      text: 'modekeep: there is no verb "statsu": did you mean status? see "modekeep help" [usage]',
      status: 2,
    })
    expect(call(node, ['statsu'])).toMatchObject({
      stdout: '',
      stderr: 'modekeep: there is no verb "statsu": did you mean status? see "modekeep help" [usage]\n',
      status: 2,
    })
  })

  it('commands without a verb print the version, the mounts and the eleven daily commands', () => {
    const { stdout, status } = call(new BinaryNode(), [])
    expect(stdout).toMatch(/^modekeep \d+\.\d+\.\d+ gives .*\n.*Mounts: none on this node\.\n/s)
    expect(stdout.match(/^ {2}modekeep \w+/gm)).toHaveLength(11)
    expect(status).toBe(0)
  })

  it.each([
    ['status'],
    ['status', '--json'],
    ['status', '--prometheus'],
    ['help', '--man'],
    ['version'],
    ['doctor'],
    ['install', '--dry-run', '--plugin-dir', '/plugins'],
  ])('commands of the executable fail with a sentence if their output cannot be written: %j', (...args) => {
    const { status, stderr } = call(new BinaryNode(), args, {}, ['sh', '-c', 'exec "$@" >/dev/full', 'sh'])
    expect(stderr).toMatch(/not all of the answer was written: stdout: .*ENOSPC.*: write it to another place/)
    expect(status).toBe(1)
  })

  it("the restore command restores a volume by name after the volume's pod was deleted", async () => {
    const { node, source } = arranged()
    const before = groups(listTree(fs, source))
    const directory = node.podDirectory('a')
    expect(await node.call('mount', directory, mountOptions(source))).toEqual({ status: 'Success' })
    const [{ volume }] = JSON.parse(call(node, ['status', '--json']).stdout).volumes
    expect(call(node, ['restore', volume])).toMatchObject({ status: 1, stderr: expect.stringContaining('shop/cart') })
    expect(await node.call('unmount', directory)).toEqual({ status: 'Success' })
    expect(call(node, ['status']).stdout).toContain(volume)
    expect(call(node, ['restore', volume, '--dry-run']).stdout).toContain('Nothing was changed.')
    expect(groups(listTree(fs, source)).test1).toBe(2000)
    expect(call(node, ['restore', volume])).toMatchObject({ stderr: '', status: 0 })
    expect(groups(listTree(fs, source))).toEqual(before)
    expect(call(node, ['gc']).stdout).toContain('0 removed, 0 kept')
    expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
  })
})

describe.skipIf(!isRoot)(title('doctor on a node'), () => {
  const findings = (node: BinaryNode) => JSON.parse(call(node, ['doctor', '--json']).stdout).findings as Finding[]
  interface Finding {
    area: string
    level: string
    text: string
    remedy: string
  }
  const bad = (node: BinaryNode) => findings(node).filter(({ level, area }) => level !== 'ok' && area !== 'kubelet')

  it('doctor checks a given file instead of the configuration, and explains its rules', () => {
    const node = new BinaryNode()
    const file = `${node.top}/new.json`
    const allow = [{ sources: [`${node.volumes}/{namespace}/*`] }, { sources: ['/srv/*'] }, { sources: ['/srv/a/*'] }]
    fs.writeFileSync(file, JSON.stringify({ stateDir: node.state, logFile: node.log, allow }))
    const { stdout } = call(node, ['doctor', '--config', file])
    expect(stdout).toContain(`${file} is valid`)
    expect(stdout).toContain(
      `rule 1: pods of every namespace may have what lies below ${node.volumes}/<their namespace>`,
    )
    expect(stdout).toContain("rule 2 lets one namespace into another's: /srv/*")
    expect(stdout).toContain('rule 3 has no effect: rule 2 before it matches all that it matches')
    fs.writeFileSync(file, '{ "allowedSources": ["/srv"] }')
    const old = call(node, ['doctor', '--config', file])
    expect(old.status).toBe(1)
    expect(old.stdout).toContain('write "allow": [{"sources":["/srv/*"],"fsTypes":["bind","tmpfs"]}] instead')
  })

  it('doctor finds no fault on a healthy node, changes nothing, and exits with status 0', () => {
    const node = new BinaryNode()
    const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
    const allow = [{ ...config.allow[0], namespaces: ['shop'] }]
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify({ ...config, allow }))
    const before = fs.readdirSync(node.top)
    const table = fs.readFileSync('/proc/self/mountinfo', 'utf8')
    // A kubelet of another test may run on this machine, and have a plugin directory without a driver.
    const alone = ['unshare', '--pid', '--fork', '--mount-proc']
    expect(call(node, ['doctor'], {}, alone)).toMatchObject({ stderr: '', status: 0 })
    expect(bad(node)).toEqual([])
    expect(fs.readdirSync(node.top)).toEqual(before)
    expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).toBe(table)
  })

  it.skipIf(!fs.existsSync('/dev/fuse'))(
    'doctor warns if a device plugin offers a device that only root can open',
    () => {
      const node = new BinaryNode()
      const device = `${node.top}/fuse`
      execFileSync('mknod', ['-m', '0600', device, 'c', '10', '229'])
      const play =
        'mount -t tmpfs none /var/lib && mkdir -p /var/lib/kubelet/device-plugins && ' +
        `touch /var/lib/kubelet/device-plugins/modekeep-fuse-7-a1.sock && mount --bind ${device} /dev/fuse && exec "$@"`
      const levels = [0o600, 0o666].map((mode) => {
        fs.chmodSync(device, mode)
        const { stdout } = call(node, ['doctor', '--json'], {}, ['unshare', '-m', 'sh', '-c', play, '-'])
        const { findings: found } = JSON.parse(stdout) as { findings: Finding[] }
        return found.filter(({ text }) => text.includes('/dev/fuse')).map(({ area, level }) => `${area}: ${level}`)
      })
      expect(levels).toEqual([['kubelet: warning'], ['kubelet: ok']])
    },
  )

  it('doctor fails with a remedy if the configuration is wrong, other users can write the file, or a helper is missing', () => {
    const node = new BinaryNode()
    const config = { stateDir: node.state, allow: [{ sources: ['/*'], fsTypes: ['bind', 'fuse.nosuchprogram'] }], x: 1 }
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify(config))
    fs.mkdirSync(node.state, { mode: 0o755 })
    fs.chmodSync(node.state, 0o777)
    const { status, stderr, stdout } = call(node, ['doctor'])
    expect({ status, stderr }).toEqual({ status: 1, stderr: 'modekeep: this node has faults: what to do is above\n' })
    expect(stdout).toMatch(/fault {4}.*key "x" is unknown/)
    const found = bad(node)
    expect(found.every(({ remedy }) => remedy !== '')).toBe(true)
    expect(found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ area: 'helpers', level: 'fault', text: expect.stringContaining('nosuchprogram') }),
        expect.objectContaining({
          area: 'configuration',
          level: 'warning',
          text: expect.stringContaining('any directory'),
        }),
        expect.objectContaining({
          area: 'state',
          level: 'fault',
          remedy: expect.stringContaining(`chmod go-w ${node.state}`),
        }),
        expect.objectContaining({ area: 'state', level: 'warning', remedy: `chmod 700 ${node.state}` }),
      ]),
    )
  })

  it('doctor reports records without mounts, mounts without records, and leftovers of interrupted calls', async () => {
    const { node, source } = arranged()
    const [one, other] = [node.podDirectory('a'), node.podDirectory('b')]
    for (const directory of [one, other]) {
      expect(await node.call('mount', directory, mountOptions(source))).toEqual({ status: 'Success' })
    }
    spawnSync('umount', ['--lazy', one])
    fs.rmSync(`${node.state}/mounts/${encodeURIComponent(other)}/record.json`)
    const found = bad(node)
    expect(found).toContainEqual(
      expect.objectContaining({
        area: 'mounts',
        text: `${one} is missing: it is not mounted`,
        remedy: 'modekeep heal',
      }),
    )
    expect(found).toContainEqual(
      expect.objectContaining({
        area: 'mounts',
        text: expect.stringContaining(`${other} is unknown: it is mounted without a record`),
      }),
    )
    expect(found).toContainEqual(
      expect.objectContaining({ area: 'volumes', remedy: 'modekeep gc (--dry-run lists them)' }),
    )
  })

  it("doctor finds kubelet's plugin directory, and reports whether the directory has this version of the driver", async () => {
    const node = new BinaryNode()
    const plugins = `${node.top}/plugins`
    // What a process is called is all there is to see of it.
    const named = spawn('bash', ['-c', 'exec -a kubelet bash -c "read -r _" x "--volume-plugin-dir=$0"', plugins], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const ended = once(named, 'close')
    try {
      // Other tests start processes called kubelet too: their numbers and directories may have this one's digits.
      const about = () =>
        findings(node).filter(
          ({ area, text }) =>
            area === 'kubelet' && (text.includes(`(process ${named.pid})`) || text.includes(`${plugins}/`)),
        )
      await expect.poll(() => about().map(({ level }) => level), { timeout: 600_000 }).toEqual(['fault'])
      fs.mkdirSync(`${plugins}/modekeep~fs`, { recursive: true })
      expect(about()).toMatchObject([{ level: 'ok' }, { level: 'fault' }])
      fs.copyFileSync(BINARY, `${plugins}/modekeep~fs/fs`, fs.constants.COPYFILE_FICLONE)
      expect(about()[1]).toMatchObject({ level: 'ok', text: `${plugins}/modekeep~fs/fs is this version` })
      fs.appendFileSync(`${plugins}/modekeep~fs/fs`, 'x')
      expect(about()[1]).toMatchObject({ level: 'warning', text: expect.stringContaining('is another version than') })
      fs.chownSync(`${plugins}/modekeep~fs`, 1000, 1000)
      expect(about()[1]).toMatchObject({ level: 'fault', text: expect.stringContaining('can replace the driver') })
    } finally {
      named.stdin?.end('\n')
      await ended
    }
  })
})

describe.skipIf(!isRoot)(title('the logs command'), () => {
  it('modekeep logs prints the calls of all pods or of one pod, and raw lines with --json', async () => {
    const { node, source } = arranged()
    expect(call(node, ['logs'])).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no log') })
    for (const pod of ['a', 'b']) {
      await node.call('mount', node.podDirectory(pod), mountOptions(source, { 'kubernetes.io/pod.name': pod }))
    }
    await node.call('unmount', node.podDirectory('a'))
    const all = call(node, ['logs'])
    expect(all).toMatchObject({ stderr: '', status: 0 })
    expect(all.stdout.trim().split('\n')).toHaveLength(3)
    expect(all.stdout).toMatch(/^\S+Z info {2}mount {4}Success +[\d.]+ ms {2}shop\/a {2}.*7 looked at|8 looked at/)
    for (const pod of ['a', 'shop/a']) {
      const raw = call(node, ['logs', '--pod', pod, '--json']).stdout.trim().split('\n')
      expect(raw.map((line) => JSON.parse(line).verb)).toEqual(['mount', 'unmount'])
    }
    expect(call(node, ['logs', '-n', '1', '--json']).stdout).toContain('"verb":"unmount"')
  })

  it('modekeep logs --follow prints new lines through a rotation, and ends when the reader of the output ends', async () => {
    const { node } = arranged()
    fs.mkdirSync(`${node.top}/log`)
    fs.writeFileSync(node.log, '{"n":1}\n')
    const child = spawn(BINARY, ['logs', '-f', '--json'], {
      env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'close')
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
    })
    await expect.poll(() => text, { timeout: 600_000 }).toBe('{"n":1}\n')
    fs.renameSync(node.log, `${node.log}.1`)
    fs.appendFileSync(`${node.log}.1`, '{"n":2}\n')
    fs.writeFileSync(node.log, '{"n":3}\n')
    await expect.poll(() => text, { timeout: 600_000 }).toBe('{"n":1}\n{"n":2}\n{"n":3}\n')
    child.stdout.destroy()
    fs.appendFileSync(node.log, '{"n":4}\n')
    expect(await ended).toEqual([0, null])
  })
})

describe.skipIf(!isRoot)(title('progress at a terminal'), () => {
  const FILES = 9000
  /** Microseconds that each change is held up by, so that the walk is long on any machine. */
  const DELAY = 500
  const SLOWLY = `strace -f -qq -o /dev/null -e trace=fchownat -e inject=fchownat:delay_enter=${DELAY}`

  /** Runs a command on a terminal, and presses Ctrl-C when it has said `until`. */
  async function typed(node: BinaryNode, command: string, until: RegExp | undefined) {
    const script = `stty cols 130; exec ${SLOWLY} ${BINARY} ${command}`
    // One processor: a walk without threads must hear of it too.
    const child = spawn('taskset', ['-c', '0', 'script', '-qec', script, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', MODEKEEP_CONFIG: `${node.top}/config.json` },
    })
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
      if (until?.test(text)) {
        child.stdin.write('\x03')
        until = undefined
      }
    })
    const [status] = await once(child, 'close')
    // strace complains where a thread that it holds up is ended.
    return { text: text.replaceAll(/strace: .*\r\n/g, ''), status }
  }

  it('a long walk at a terminal has a progress bar, and after Ctrl-C the printed commands continue or restore the walk', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/large`
    fs.mkdirSync(source)
    for (let n = 0; n < FILES; n++) fs.writeFileSync(`${source}/${n}`, '')
    const apply = `apply ${source} --fsgroup 2000`
    const stopped = await typed(node, apply, /\r/)
    const bar = /\rapply \[#*-*\] +\d+% +[\d,]+ of 9,001 +[\d,]+ changed +[\d,]+\/s +\d+ s left/
    expect(stopped.text).toMatch(bar)
    expect(stopped.text).toMatch(
      new RegExp(`\\x1b\\[K(\\^C)?modekeep: interrupted\\. .*"modekeep restore ${source}" puts it back\\r\\n$`),
    )
    // script(1) has the status of what a signal has ended as a shell does.
    expect(stopped.status).toBe(130)
    const half = JSON.parse(call(node, ['status', '--json']).stdout).volumes
    expect(half).toMatchObject([{ source, complete: false, walk: null }])
    expect(call(node, ['doctor']).stdout).toContain(`a walk or restore of ${source} was not finished`)
    expect(call(node, ['restore', source])).toMatchObject({ stderr: '', status: 0 })
    const left = () => fs.readdirSync(source).filter((name) => fs.statSync(`${source}/${name}`).gid !== 0)
    expect(left()).toEqual([])
    expect(call(node, ['apply', source, '--fsgroup', '2000'])).toMatchObject({ stderr: '', status: 0 })
    expect(left()).toHaveLength(FILES)
  })
})
