import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { MODEKEEP, reply } from './modekeep.ts'

const isBuilt = fs.existsSync(MODEKEEP)
const built = (name: string) => (isBuilt ? name : `${name} (skipped: there is no ${MODEKEEP}; run "npm run build")`)
const root = (name: string) => (isRoot ? built(name) : `${name} (skipped: mounts need root; run "sudo npm test")`)

interface Around {
  cwd?: string
  config?: string
  program?: string
  uid?: number
}

function run(args: readonly (string | Buffer)[], { cwd = '/', config = '/dev/null', program, uid }: Around = {}) {
  const { stdout, stderr, status, error } = spawnSync(program ?? MODEKEEP, args as string[], {
    cwd,
    env: { MODEKEEP_CONFIG: config },
    encoding: 'utf8',
    timeout: 600_000,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  if (error) throw error
  return { stdout, stderr, status }
}

describe.skipIf(!isBuilt)(built("an operator's arguments"), () => {
  it.each([
    [['help'], 'By hand, as root:'],
    [['--help'], 'By hand, as root:'],
    [['-h'], 'By hand, as root:'],
    [['help', 'restore'], 'modekeep restore DIR|VOLUME [options]\n'],
    [['plan', '--help'], 'modekeep plan DIR --fsgroup G'],
    [['apply', '/nowhere', '-h'], 'modekeep apply DIR --fsgroup G'],
    [['restore', '--help'], 'Examples:\n  modekeep restore /srv/volumes/data --dry-run\n'],
    [['version'], /^modekeep \d+\.\d+\.\d+ \(glibc 2\.\d+\S*\)\n$/],
    [['--version'], /^modekeep \d+\.\d+\.\d+ \(glibc 2\.\d+\S*\)\n$/],
  ])("the operator's arguments %j print only to stdout and succeed", (args, text) => {
    const said = run(args)
    expect(said.stdout).toMatch(text)
    expect({ ...said, stdout: '' }).toEqual({ stdout: '', stderr: '', status: 0 })
  })

  it.each([
    [['plan'], /^modekeep: plan takes one directory, got none.*--fsgroup is missing[^\n]*\n$/],
    [['apply', '/srv', '--fsgroup'], /^modekeep: --fsgroup has no value[^\n]*\n$/],
    [
      ['restore', '/srv', '--forced'],
      /^modekeep: restore has no option "--forced": did you mean --force\? It takes [^\n]*\n$/,
    ],
    [['plan', '/srv', '--fsgroup', '\x1b[31m\x9b'], /^modekeep: --fsgroup is "[^\p{Cc}]*\n$/u],
  ])('the invalid arguments %j print one sentence to stderr, with exit status 2', (args, sentence) => {
    const said = run(args)
    expect(said).toMatchObject({ stdout: '', status: 2 })
    expect(said.stderr).toMatch(sentence)
  })

  it('invalid arguments with --json print the error as JSON to stdout', () => {
    const said = run(['plan', '--json'])
    expect(said).toMatchObject({ stderr: '', status: 2 })
    expect(JSON.parse(said.stdout)).toEqual({
      apiVersion: 'modekeep/v1',
      kind: 'Error',
      error: expect.stringContaining('--fsgroup is missing'),
    })
  })

  it('a command that needs root prints a plain sentence for another user', () => {
    const top = fs.mkdtempSync(`${tmpdir()}/modekeep-operator-`)
    try {
      // Where everybody may run it from.
      const program = `${top}/modekeep`
      fs.chmodSync(top, 0o755)
      fs.copyFileSync(MODEKEEP, program, fs.constants.COPYFILE_FICLONE)
      const asNobody = isRoot ? { program, uid: 65534 } : { program }
      for (const args of [
        ['plan', '/srv', '--fsgroup', '1'],
        ['apply', '/srv', '--fsgroup', '1'],
        ['restore', '/srv'],
      ]) {
        const stderr = `modekeep: ${args[0]} needs root: run it with sudo [command]\n`
        expect(run(args, asNobody)).toEqual({ stdout: '', stderr, status: 1 })
      }
    } finally {
      fs.rmSync(top, { recursive: true })
    }
  })
})

for (const fsType of ['tmpfs', 'ext4'] as const) {
  describe.skipIf(!isBuilt || !isRoot)(root(`commands on a volume of ${fsType}`), () => {
    let stage: Stage
    let directory: string
    let config: string
    beforeEach(() => {
      stage = kernelStage(fsType)
      // No pod may mount it.
      directory = `${stage.top}/elsewhere/data`
      config = `${stage.top}/config.json`
      const { stateDir } = stage.config
      fs.writeFileSync(config, JSON.stringify({ stateDir, logFile: `${stage.top}/log`, allow: [] }))
      makeTree(fs, directory, [
        ...SIX_FILES,
        'dir sub 0700',
        'file sub/suid 4755',
        'file sub/power 0755',
        'link out /etc',
      ])
      execFileSync(requireProgram('setfattr'), [
        '-n',
        'security.capability',
        '-v',
        CAP_NET_RAW,
        `${directory}/sub/power`,
      ])
    })
    afterEach(() => stage.close())

    // cap_net_raw=ep, struct vfs_cap_data version 2.
    const CAP_NET_RAW = '0x0100000200200000000000000000000000000000'
    const call = (...args: string[]) => run(args, { config })
    const json = (...args: string[]) => {
      const said = call(...args, '--json')
      expect(said).toMatchObject({ stderr: '', status: 0 })
      return JSON.parse(said.stdout)
    }
    const capability = () =>
      execFileSync(
        'getfattr',
        ['-e', 'hex', '-n', 'security.capability', '--absolute-names', `${directory}/sub/power`],
        {
          encoding: 'utf8',
        },
      )
    const found = () => ({
      modes: modes(listTree(fs, directory)),
      groups: groups(listTree(fs, directory)),
      cap: capability(),
    })

    it('a plan changes nothing, not even an access time', () => {
      execFileSync('mount', ['-o', 'remount,strictatime', stage.top])
      const times = () =>
        [directory, `${directory}/sub`, `${directory}/sub/suid`, `${directory}/out`].map((path) => {
          const { atimeNs, ctimeNs, mtimeNs } = fs.lstatSync(path, { bigint: true })
          return { path, atimeNs, ctimeNs, mtimeNs }
        })
      const before = times()
      const said = call('plan', directory, '--fsgroup', '2000', '--fs-group-change-policy', 'Always')
      expect(said).toMatchObject({ stderr: '', status: 0 })
      expect(times()).toEqual(before)
      expect(fs.readdirSync(stage.top).sort()).toEqual(
        ['config.json', 'elsewhere', 'volumes', ...(fsType === 'ext4' ? ['lost+found'] : [])].sort(),
      )
      expect(said.stdout).toMatch(/^ {2}-rw-r--r-- 0 0 +-rw-r--r-- 0 2000 +-rw-rw-r-- 0 2000 +test1$/m)
    })

    it('a plan equals the apply after it, also for immutable files, and the second apply changes nothing', () => {
      execFileSync(requireProgram('chattr'), ['+i', `${directory}/test4`])
      execFileSync(requireProgram('chattr'), ['+a', `${directory}/test5`])
      try {
        const planned = json('plan', directory, '--fsgroup', '2000')
        expect(planned.report).toMatchObject({ changed: 8, left: { 'immutable or append-only': { count: 2 } } })
        const done = json('apply', directory, '--fsgroup', '2000')
        expect(done.report).toEqual(planned.report)
        const before = listTree(fs, directory)
        expect(json('apply', directory, '--fsgroup=2000', '--fs-group-change-policy=Always').report).toMatchObject({
          changed: 0,
        })
        expect(listTree(fs, directory)).toEqual(before)
      } finally {
        execFileSync(requireProgram('chattr'), ['-i', '-a', `${directory}/test4`, `${directory}/test5`])
      }
    })

    it('an apply changes the group, and a restore returns everything, privileges included', () => {
      const before = found()
      const applied = call('apply', directory, '--fsgroup', '2000')
      expect(applied).toMatchObject({ stderr: '', status: 0 })
      expect(applied.stdout).toContain('11 looked at, 10 changed, 0 already right, 1 left alone\n')
      const given = found()
      expect(given.modes).toEqual({ ...before.modes, '.': '2755', sub: '2700' })
      expect(given.cap).toBe(before.cap)
      expect(given.groups.test2).toBe(2000)
      const restored = call('restore', directory)
      expect(restored).toMatchObject({ stderr: '', status: 0 })
      expect(restored.stdout).toContain('11 looked at, 10 put back, 0 as recorded already, 0 left alone\n')
      expect(found()).toEqual(before)
      expect(call('restore', directory).stdout).toContain('nothing is recorded')
    })

    it('an apply with the option grant sets the modes that kubelet would set', () => {
      const { differences, kubelet } = json('plan', directory, '--fsgroup', '2000', '--group-access', 'grant')
      json('apply', directory, '--group-access', 'grant', '--fsgroup', '2000')
      const now = listTree(fs, directory)
      expect(differences).toHaveLength(10)
      for (const { path, kubelet } of differences) {
        expect(now[path]).toMatchObject({ mode: kubelet.mode.toString(8).padStart(4, '0'), gid: kubelet.gid })
      }
      expect(kubelet).toEqual({ walks: true, touched: 11, changed: 11, widened: 9 })
    })

    it('each command prints one JSON document with documented fields', () => {
      const asked = {
        directory,
        volume: expect.any(String),
        group: 2000,
        groupAccess: 'keep',
        policy: 'OnRootMismatch',
      }
      const left = { symlink: { count: 1, examples: ['out'] } }
      const report = { visited: 11, changed: 10, alreadyRight: 0, left }
      const planned = json('plan', directory, '--fsgroup', '2000')
      expect(planned).toEqual({
        apiVersion: 'modekeep/v1',
        kind: 'Plan',
        ...asked,
        walks: true,
        refusal: null,
        submounts: null,
        busy: false,
        underWay: null,
        recorded: null,
        report,
        widened: 0,
        kubelet: { walks: true, touched: 11, changed: 11, widened: 9 },
        differences: expect.any(Array),
      })
      expect(planned.differences.find(({ path }: { path: string }) => path === 'test3')).toEqual({
        path: 'test3',
        type: 'file',
        uid: 0,
        before: { gid: 0, mode: 0o410 },
        after: { gid: 2000, mode: 0o410 },
        kubelet: { gid: 2000, mode: 0o670 },
      })
      const { volume } = planned
      expect(json('apply', directory, '--fsgroup', '2000')).toEqual({
        apiVersion: 'modekeep/v1',
        kind: 'Apply',
        ...asked,
        volume,
        walked: true,
        report,
      })
      const restored = {
        apiVersion: 'modekeep/v1',
        kind: 'Restore',
        directory,
        volume,
        isDry: false,
        isForced: false,
        outcome: 'restored',
        next: null,
        refusal: null,
        otherDisk: null,
        report: { ...report, left: {} },
        differences: [],
      }
      expect(json('restore', directory)).toEqual(restored)
      const said = call('restore', '/nowhere', '--json')
      expect(said).toMatchObject({ stderr: '', status: 1 })
      expect(JSON.parse(said.stdout)).toEqual({
        apiVersion: 'modekeep/v1',
        kind: 'Error',
        error: expect.stringContaining('directory "/nowhere" does not exist'),
      })
    })

    it('a plan accepts its arguments in any order, and a relative directory', () => {
      const cwd = `${stage.top}/elsewhere`
      const said = run(['plan', '--fsgroup', '2000', '--fs-group-change-policy', 'Always', '--json', 'data'], {
        config,
        cwd,
      })
      expect(JSON.parse(said.stdout)).toMatchObject({ directory, group: 2000, policy: 'Always' })
    })

    it('a plan escapes control characters in names of files', () => {
      // ext4 lists names in an order of its own, and a plan shows ten.
      for (const name of ['test1', 'test2', 'test3']) fs.rmSync(`${directory}/${name}`)
      const bad = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff, 0x1b, 0x9b, 0x0a])])
      fs.writeFileSync(bad, '')
      fs.writeFileSync(`${directory}/\x1b]0;title\x07\r\n\u009b2J\u202e`, '')
      fs.symlinkSync('x', `${directory}/\x1b[31mlink`)
      const quiet = /^[^\p{Cc}\p{Cf}\p{Zl}]*$/u
      const hears = (...args: string[]) => {
        const { stdout, stderr, status } = call(...args)
        // What its user changed is left: the one thing that is said beside the document.
        const isLeft = args[0] === 'restore'
        expect({ isSilent: stderr === '', status }).toEqual({ isSilent: !isLeft, status: Number(isLeft) })
        for (const line of stdout.split('\n')) expect(line).toMatch(quiet)
        return stdout
      }
      expect(hears('plan', directory, '--fsgroup', '2000')).toContain(
        '\\u{1b}]0;title\\u{7}\\u{d}\\u{a}\\u{9b}2J\\u{202e}',
      )
      hears('plan', directory, '--fsgroup', '2000', '--json')
      expect(hears('apply', directory, '--fsgroup', '2000')).toContain('\\u{1b}[31mlink')
      fs.chmodSync(bad, 0o600)
      expect(hears('restore', directory)).toContain('changed since by its user: 1 (\ufffd\\u{1b}\ufffd\\u{a})')
    })

    it('a command refuses a volume that a pod uses, and names the pod', () => {
      const volumes = {
        ...JSON.parse(fs.readFileSync(config, 'utf8')),
        allow: [{ sources: [`${stage.top}/elsewhere/*`] }],
      }
      fs.writeFileSync(config, JSON.stringify(volumes))
      const pod = stage.podDirectory('cart')
      fs.mkdirSync(pod, { recursive: true })
      const options = { source: directory, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
      const named = { 'kubernetes.io/pod.namespace': 'shop', 'kubernetes.io/pod.name': 'cart' }
      const env = { MODEKEEP_CONFIG: config }
      expect(reply(['mount', pod, JSON.stringify({ ...options, ...named })], { env })).toEqual({ status: 'Success' })
      try {
        const before = listTree(fs, directory)
        for (const args of [
          ['apply', directory, '--fsgroup', '3000'],
          ['restore', directory],
        ]) {
          const said = call(...args)
          expect(said).toMatchObject({ stdout: '', status: 1 })
          expect(said.stderr).toMatch(/^modekeep: [^\n]*pod shop\/cart[^\n]*\n$/)
        }
        expect(call('plan', directory, '--fsgroup', '3000').stdout).toMatch(
          /^apply would be refused now: .*shop\/cart/m,
        )
        expect(listTree(fs, directory)).toEqual(before)
      } finally {
        expect(reply(['unmount', pod], { env })).toEqual({ status: 'Success' })
      }
      expect(call('restore', directory)).toMatchObject({ stderr: '', status: 0 })
    })

    it('a restore that cannot restore everything fails, and keeps the remaining records', () => {
      call('apply', directory, '--fsgroup', '2000')
      execFileSync(requireProgram('chattr'), ['+i', `${directory}/test1`])
      try {
        const said = call('restore', directory)
        expect(said.status).toBe(1)
        expect(said.stdout).toContain('left alone, immutable or append-only: 1 (test1)')
        expect(said.stderr).toMatch(/^modekeep: not everything was put back[^\n]*\n$/)
      } finally {
        execFileSync(requireProgram('chattr'), ['-i', `${directory}/test1`])
      }
      expect(call('restore', directory)).toMatchObject({ stderr: '', status: 0 })
      expect(listTree(fs, directory).test1?.gid).toBe(0)
    })

    it('an apply is logged, and a plan is not', () => {
      call('plan', directory, '--fsgroup', '2000')
      expect(fs.existsSync(`${stage.top}/log`)).toBe(false)
      call('apply', directory, '--fsgroup', '2000')
      call('restore', directory)
      const lines = fs.readFileSync(`${stage.top}/log`, 'utf8').trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([
        { verb: 'apply', directory, outcome: 'Success', inodes: { changed: 10 } },
        { verb: 'restore', directory, outcome: 'Success', inodes: { changed: 10 } },
      ])
    })

    it('a command changes nothing with an invalid configuration', () => {
      fs.writeFileSync(config, '{"stateDir": "relative"}')
      const before = listTree(fs, directory)
      const said = call('apply', directory, '--fsgroup', '2000')
      expect(said).toMatchObject({ stdout: '', status: 1 })
      expect(said.stderr).toContain('key "stateDir" is "relative"')
      expect(listTree(fs, directory)).toEqual(before)
    })
  })
}
