import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { isRoot } from '../helpers/stage.ts'
import { listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { type Circumstances, MODEKEEP, reply, run, understood } from './modekeep.ts'

const isBuilt = fs.existsSync(MODEKEEP)
const built = (name: string) => (isBuilt ? name : `${name} (skipped: there is no ${MODEKEEP}; run "npm run build")`)
const root = (name: string) => (isRoot ? built(name) : `${name} (skipped: mounts need root; run "sudo npm test")`)

let top: string
let directory: string
let source: string
let env: Record<string, string>

beforeEach(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-binary-`)
  directory = `${top}/pods/8c03/volumes/modekeep~fs/v`
  source = `${top}/volumes/data`
  env = { MODEKEEP_CONFIG: `${top}/config.json` }
  fs.mkdirSync(directory, { recursive: true })
  makeTree(fs, source, SIX_FILES)
  configure(JSON.stringify(config()))
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

function config() {
  return { stateDir: `${top}/state`, logFile: `${top}/log`, allow: [{ sources: [`${top}/volumes/*`] }] }
}

function configure(text: string): void {
  fs.writeFileSync(`${top}/config.json`, text)
}

function layers(at = directory): number {
  return selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), at).length
}

function logText(): string {
  return fs.existsSync(`${top}/log`) ? fs.readFileSync(`${top}/log`, 'utf8') : ''
}

/** As after a call that did nothing: no mount, no file in the pod's directory, no record, lock or rest of one. */
function expectNothingLeft(): void {
  expect(layers()).toBe(0)
  if (fs.existsSync(directory) && fs.statSync(directory).isDirectory()) expect(fs.readdirSync(directory)).toEqual([])
  const mounts = `${top}/state/mounts`
  expect(fs.existsSync(mounts) ? fs.readdirSync(mounts) : []).toEqual([])
}

function mountFails(options: string, message: string | RegExp, at = directory, around: Circumstances = { env }): void {
  const answer = reply(['mount', at, options], around)
  expect(answer).toEqual({
    status: 'Failure',
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  })
  expectNothingLeft()
}

const options = (over: Record<string, unknown> = {}) => JSON.stringify({ source, ...over })
const tmpfs = { source: '', 'kubernetes.io/fsType': 'tmpfs' }

describe.skipIf(!isBuilt)(built("replies to kubelet's verbs"), () => {
  it('the executable replies to init with the capabilities of the driver', () => {
    expect(reply(['init'], { env })).toEqual({
      status: 'Success',
      capabilities: {
        attach: false,
        fsGroup: false,
        requiresFSResize: false,
        selinuxRelabel: false,
        supportsMetrics: true,
      },
    })
  })

  it.each([
    ['attach'],
    ['detach'],
    ['waitforattach'],
    ['isattached'],
    ['getvolumename'],
    ['mountdevice'],
    ['unmountdevice'],
    ['expandvolume'],
    ['expandfs'],
  ])('the executable replies to %j with Not supported, for any further arguments', (verb) => {
    const expected = { status: 'Not supported', message: `modekeep has no verb ${JSON.stringify(verb)}` }
    expect(reply([verb], { env })).toEqual(expected)
    expect(reply([verb, '{"source":"/a"}', 'node'], { env })).toEqual(expected)
    expectNothingLeft()
  })

  it.each([[''], ['-v'], ['Plan'], ['--plan'], ['-e'], ['--inspect'], ['--'], ['INIT'], ['stauts'], ['no such\nverb']])(
    'the executable replies to %j, which kubelet cannot send, with a sentence and status 2',
    (verb) => {
      const { text, code } = run([verb, '{"source":"/a"}'], { env })
      expect(text).toMatch(/^modekeep: there is no verb .*see "modekeep help" \[usage\]\n$/)
      expect(code).toBe(2)
      expectNothingLeft()
    },
  )

  it.each([
    ['init with one too many', ['init', 'x'], 'init takes 0 argument(s), got 1: call it as "init" [call-arguments]'],
    ['mount alone', ['mount'], 'mount takes 2 argument(s), got 0: call it as "mount DIR JSON" [call-arguments]'],
    [
      'mount without options',
      ['mount', '/a'],
      'mount takes 2 argument(s), got 1: call it as "mount DIR JSON" [call-arguments]',
    ],
    [
      'mount with too many',
      ['mount', '/a', '{}', ''],
      'mount takes 2 argument(s), got 3: call it as "mount DIR JSON" [call-arguments]',
    ],
    ['unmount alone', ['unmount'], 'unmount takes 1 argument(s), got 0: call it as "unmount DIR" [call-arguments]'],
    [
      'unmount with too many',
      ['unmount', '/a', '/b'],
      'unmount takes 1 argument(s), got 2: call it as "unmount DIR" [call-arguments]',
    ],
  ])('the executable replies to %s with a failure that names the correct call', (_what, args, message) => {
    expect(reply(args, { env })).toEqual({ status: 'Failure', message })
    expectNothingLeft()
  })

  it('the executable replies without reading stdin', () => {
    expect(reply(['init'], { env, stdin: '{"x":1}\n' }).status).toBe('Success')
  })

  it.each([['--inspect'], ['--trace-warnings'], ['--no-such-flag'], ['--require=/nowhere.js']])(
    'the executable replies with the same text if the environment has NODE_OPTIONS=%s',
    (NODE_OPTIONS) => {
      expect(reply(['init'], { env: { ...env, NODE_OPTIONS } }).status).toBe('Success')
    },
  )

  it('the executable replies also after its working directory was deleted', () => {
    const script = `mkdir ${top}/gone && cd ${top}/gone && rmdir ${top}/gone && exec "$0" "$@" 2>&1`
    expect(reply(['init'], { env, script }).status).toBe('Success')
  })
})

describe.skipIf(!isBuilt)(built('refused mounts'), () => {
  it.each([
    ['no JSON', '{"source":', 'the options are not JSON'],
    ['nothing', '', 'the options are not JSON'],
    ['an array', '[]', 'the options are an array'],
    ['null', 'null', 'the options are null'],
    ['a number', '7', 'the options are a number'],
    ['nested', '{"source":{"a":"b"}}', 'option "source" is {"a":"b"}: write it as a JSON string'],
    ['given twice', '{"source":"/a","\\u0073ource":"/b"}', 'option "source" is given twice: keep one'],
    ['unknown', '{"sourc":"/a","__proto__":"x"}', 'unknown ["sourc","__proto__"]: the options are source, '],
    ['of wrong types', '{"source":5}', 'option "source" is 5: write it as a JSON string'],
    ['outside the rules', '{"source":"/etc"}', 'does not have its source'],
    ['of an unknown type', '{"source":"/a","kubernetes.io/fsType":"ext9"}', 'fsType is "ext9"'],
  ])('a FlexVolume mount is refused without an effect for options that are %s', (_what, text, message) => {
    mountFails(text, message)
  })

  it.each([['02000'], ['2e3'], [''], [' 5'], ['+5'], ['5.0'], ['4294967295'], ['-2']])(
    'a FlexVolume mount is refused without an effect for fsGroup %j',
    (group) => {
      const named = new RegExp(
        `option "kubernetes.io/mounterArgs.FsGroup" is ${JSON.stringify(group).replace('+', '\\+')}: a group is`,
      )
      mountFails(options({ 'kubernetes.io/mounterArgs.FsGroup': group }), named)
    },
  )

  it('a FlexVolume mount is refused without an effect for two groups that differ', () => {
    mountFails(
      options({ 'kubernetes.io/mounterArgs.FsGroup': '1', 'kubernetes.io/fsGroup': '2' }),
      'options "kubernetes.io/fsGroup" ("2") and "kubernetes.io/mounterArgs.FsGroup" ("1") differ: keep one',
    )
  })

  // The kernel takes no single argument of 128 KiB or more (MAX_ARG_STRLEN), so kubelet cannot pass a longer one either.
  it.each([
    ['value', () => options({ mountOptions: 'x'.repeat(100_000) })],
    ['key', () => options({ ['x'.repeat(100_000)]: '' })],
    ['list of keys', () => options(Object.fromEntries(Array.from({ length: 8000 }, (_, n) => [`k${n}`, 'x'])))],
    ['list of options', () => options({ mountOptions: Array.from({ length: 20_000 }, (_, n) => `x${n % 9}`).join() })],
    ['list of bad values', () => options({ ...tmpfs, mountOptions: `size=${'x'.repeat(200)},`.repeat(600) })],
    ['depth', () => `{"source":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
    ['almost the longest argument', () => `{"source":"${'x'.repeat(131_000)}"}`],
  ])(
    'a FlexVolume mount is refused without an effect for a very long %s, with a message that fits into an event',
    (_what, text) => {
      const { message } = reply(['mount', directory, text()], { env })
      expect(Buffer.byteLength(String(message))).toBeLessThan(1024)
      expectNothingLeft()
    },
  )

  it('a FlexVolume mount is refused without an effect for a directory that is relative', () => {
    mountFails(options(), 'mount directory "pods/v": an absolute path is needed', 'pods/v')
  })

  it.each([
    ['does not exist', () => `${directory}x`, 'does not exist: kubelet creates it before it calls mount'],
    ['has no parent', () => `${directory}/x/y`, 'does not exist: kubelet creates it before it calls mount'],
    ['is a file', () => `${directory}-file`, 'is a link or a file: remove it'],
    ['is a link', () => `${directory}-link`, 'is a link or a file: remove it'],
    [
      'has a name too long for any file',
      () => `${directory}${'x'.repeat(300)}`,
      'a name has at most 255 bytes, shorten it',
    ],
  ])('a FlexVolume mount is refused without an effect for a directory that %s', (_what, at, message) => {
    fs.writeFileSync(`${directory}-file`, 'kept')
    fs.symlinkSync(directory, `${directory}-link`)
    mountFails(options(), message, at())
    expect(fs.readFileSync(`${directory}-file`, 'utf8')).toBe('kept')
    expect(fs.readlinkSync(`${directory}-link`)).toBe(directory)
  })

  it('a FlexVolume mount is refused without an effect for a directory whose bytes are not UTF-8', () => {
    const script = `exec "$0" mount "$(printf '${top}/a\\377b')" '{}' 2>&1`
    expect(reply([], { env, script })).toEqual({
      status: 'Failure',
      message: `mount directory "${top}/a\ufffdb": it is not valid UTF-8; kubelet passes <its root>/pods/<uid>/volumes/… [mount-directory]`,
    })
    expectNothingLeft()
  })

  it('a FlexVolume mount is refused without an effect for a source that is missing, a file, or behind a link', () => {
    fs.writeFileSync(`${top}/volumes/file`, '')
    fs.symlinkSync('/etc', `${top}/volumes/link`)
    mountFails(options({ source: `${top}/volumes/none` }), 'does not exist on this node')
    mountFails(options({ source: `${top}/volumes/file` }), 'is not a directory')
    mountFails(options({ source: `${top}/volumes/link` }), 'has a symbolic link in its path')
    mountFails(options({ source: `${top}/volumes/link/ssl` }), 'has a symbolic link in its path')
  })

  it('a FlexVolume mount is refused without an effect with all faults in one message', () => {
    mountFails(
      '{"ownership":"x","sourc":"y","restoreOnUnmount":"z"}',
      /^unknown \["sourc"\].*; option "ownership".*; option "restoreOnUnmount"/,
    )
  })
})

describe.skipIf(!isBuilt)(built('unusual standard streams'), () => {
  it.each([
    ['stdout is closed', 'exec "$0" "$@" 2>&1 >&-'],
    ['both are closed', 'exec "$0" "$@" >&- 2>&-'],
    ['all three are closed', 'exec "$0" "$@" <&- >&- 2>&-'],
    ['stdout is a full disk', 'exec "$0" "$@" 2>&1 >/dev/full'],
  ])('a call with unusual standard streams, %s: succeeds, and prints nothing to other files', (_what, script) => {
    expect(run(['init'], { env, script })).toEqual({ text: '', code: 0 })
    expect(run(['unmount', directory], { env, script })).toEqual({ text: '', code: 0 })
    expect(JSON.parse(logText())).toMatchObject({ verb: 'unmount', outcome: 'Success' })
  })

  it.each([
    ['stderr is closed', 'exec "$0" "$@" 2>&-'],
    ['stdin is closed', 'exec "$0" "$@" <&- 2>&1'],
    ['stdin and stderr are closed', 'exec "$0" "$@" <&- 2>&-'],
  ])('a call with unusual standard streams, %s: gives the complete reply', (_what, script) => {
    expect(reply(['init'], { env, script }).status).toBe('Success')
    expect(reply(['unmount', directory], { env, script })).toEqual({ status: 'Success' })
  })

  it('a call succeeds if the reader of its output has ended', () => {
    const script = `{ sleep 0.3; "$0" "$@"; echo $? >"$CODE"; } 2>&1 | true; while ! [ -s "$CODE" ]; do sleep 0.05; done`
    run(['unmount', directory], { env: { ...env, CODE: `${top}/code` }, script })
    expect(fs.readFileSync(`${top}/code`, 'utf8')).toBe('0\n')
    expect(JSON.parse(logText())).toMatchObject({ verb: 'unmount', outcome: 'Success' })
  })

  it('a call with a full output pipe and a slow reader gives the complete reply', () => {
    // 64 KiB is what a pipe holds.
    const script = `{ head -c 65536 /dev/zero; "$0" "$@" 2>&1; } | { sleep 0.5; tail -c +65537; }`
    expect(understood(run(['init'], { env, script })).status).toBe('Success')
  })
})

describe.skipIf(!isBuilt || !isRoot)(
  root('with an invalid configuration init and unmount succeed, and mount names the fault'),
  () => {
    // Where the configuration cannot be read at all, the default places hold: never those of the machine under test.
    const script =
      'exec unshare -m sh -c \'mount -t tmpfs t /var/lib && mkdir -p /var/log && mount -t tmpfs t /var/log && exec "$0" "$@" 2>&1\' "$0" "$@"'
    it.each<[string, () => void, string]>([
      ['no JSON', () => configure('{"stateDir":'), 'config.json is not JSON: '],
      ['an array', () => configure('[]'), 'config.json is not a JSON object'],
      [
        'an unknown key',
        () => configure(JSON.stringify({ ...config(), stateDirectory: '/x' })),
        'key "stateDirectory" is unknown',
      ],
      [
        'an invalid value',
        () => configure(JSON.stringify({ ...config(), logLevel: 'loud' })),
        'key "logLevel" is "loud"',
      ],
      ['missing', () => fs.rmSync(`${top}/config.json`), 'config.json cannot be read (ENOENT)'],
      [
        'unreadable',
        () => {
          fs.rmSync(`${top}/config.json`)
          fs.mkdirSync(`${top}/config.json`)
        },
        'config.json is no regular file: write one there',
      ],
    ])('%s', (_what, spoil, message) => {
      spoil()
      mountFails(options(), message, directory, { env, script })
      expect(reply(['init'], { env, script }).status).toBe('Success')
      expect(reply(['unmount', directory], { env, script })).toEqual({ status: 'Success' })
      expectNothingLeft()
    })
  },
)

describe.skipIf(!isBuilt || !isRoot)(root('mounts by the FlexVolume protocol'), () => {
  const unmounted = () => expect(reply(['unmount', directory], { env })).toEqual({ status: 'Success' })
  afterEach(() => {
    run(['unmount', directory], { env })
    expectNothingLeft()
  })

  /** Recorded from kubelet 1.20.2. */
  const recorded = (over: Record<string, string> = {}) =>
    JSON.stringify({
      'kubernetes.io/fsType': '',
      'kubernetes.io/mounterArgs.FsGroup': '2000',
      'kubernetes.io/pod.name': 'p-node',
      'kubernetes.io/pod.namespace': 'default',
      'kubernetes.io/pod.uid': '8c03',
      'kubernetes.io/pvOrVolumeName': 'v',
      'kubernetes.io/readwrite': 'rw',
      'kubernetes.io/serviceAccount.name': '',
      source,
      ...over,
    })

  it('a FlexVolume mount that is repeated as kubelet does mounts once, and changes no inode', () => {
    const before = listTree(fs, source)
    for (let call = 0; call < 4; call++) {
      expect(reply(['mount', directory, recorded()], { env })).toEqual({ status: 'Success' })
      expect(layers()).toBe(1)
      expect(listTree(fs, directory)).toEqual(before)
    }
    unmounted()
    expect(listTree(fs, source)).toEqual(before)
    expectNothingLeft()
    unmounted()
  })

  it('a FlexVolume mount with ownership "walk" changes the group and keeps the modes', () => {
    expect(reply(['mount', directory, recorded({ ownership: 'walk' })], { env })).toEqual({ status: 'Success' })
    const owned = listTree(fs, directory)
    expect(modes(owned)).toEqual({
      '.': '2755',
      test1: '0644',
      test2: '0000',
      test3: '0410',
      test4: '0111',
      test5: '0440',
      test6: '0660',
    })
    expect(Object.values(owned).map(({ gid }) => gid)).toEqual(Array(7).fill(2000))
    expect(reply(['mount', directory, recorded({ ownership: 'walk' })], { env })).toEqual({ status: 'Success' })
    expect(listTree(fs, directory)).toEqual(owned)
  })

  it.each([['with space'], ['new\nline'], ['tab\tand\\back'], ['日本']])(
    'a FlexVolume mount succeeds at a directory named %j',
    (name) => {
      const at = `${directory}/../${name}`.replace('/v/..', '')
      fs.mkdirSync(at)
      expect(reply(['mount', at, options()], { env })).toEqual({ status: 'Success' })
      expect(layers(at)).toBe(1)
      expect(reply(['unmount', at], { env })).toEqual({ status: 'Success' })
      expect(layers(at)).toBe(0)
      expectNothingLeft()
    },
  )

  it('a FlexVolume mount succeeds while its streams are closed', () => {
    const script = 'exec "$0" "$@" >&- 2>&-'
    expect(run(['mount', directory, options()], { env, script })).toEqual({ text: '', code: 0 })
    expect(layers()).toBe(1)
  })

  it("a FlexVolume mount of a bind volume with a Secret is refused, and the Secret's values are neither in the reply nor in the log", () => {
    const secret = 'aHVudGVyMg'
    const withSecret = { 'kubernetes.io/secret/password': secret, 'kubernetes.io/secret/user': `${secret}x` }
    const texts = [
      options(withSecret),
      options({ ...withSecret, ownership: 'x', unknown: 'y' }),
      options({ ...withSecret, 'kubernetes.io/secret/other': [secret] }),
      options({ ...withSecret, source: `${top}/volumes/none` }),
      `${options(withSecret)},`,
    ].map((text) => run(['mount', directory, text], { env }).text)
    expect(texts.map((text) => JSON.parse(text).status)).toEqual([
      'Failure',
      'Failure',
      'Failure',
      'Failure',
      'Failure',
    ])
    unmounted()
    expect(texts.join('') + logText()).not.toContain(secret)
    expect(logText().split('\n').filter(Boolean)).toHaveLength(6)
  })
})
