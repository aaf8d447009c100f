import { describe, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../../src/cli/commands/arguments.ts'
import { OPERATOR_VERB_NAMES } from '../../../src/cli/commands/index.ts'
import { isFlexVolumeVerb } from '../../../src/frontends/flexvolume/protocol.ts'

const parse = (...argv: string[]) => parseOperatorCommand(argv, () => '/here/dir')

const restoreOf = (directory: string) => ({
  verb: 'restore',
  target: { directory },
  isDry: false,
  isForced: false,
})

const STATUS = { verb: 'status', metrics: undefined, selection: undefined, form: undefined, isWatching: false }

describe("an operator's arguments", () => {
  it("need a directory and a group, and other options have the defaults of a pod's options", () => {
    expect(parse('plan', '/srv/data', '--fsgroup', '2000')).toEqual({
      verb: 'plan',
      directory: '/srv/data',
      fsGroup: { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' },
    })
  })

  it('are accepted in any order, with and without =', () => {
    const argv = ['--fs-group-change-policy=Always', '--json', '--group-access', 'grant', '/srv/data', '--fsgroup=0']
    expect(parse('apply', ...argv)).toEqual({
      verb: 'apply',
      directory: '/srv/data',
      fsGroup: { groupId: 0, access: 'grant', changePolicy: 'Always' },
    })
  })

  it.each([
    ['data', '/here/dir/data'],
    ['.', '/here/dir'],
    ['..', '/here'],
    ['../../x', '/x'],
    ['./../x/', '/here/x'],
    ['/srv//a/./b/', '/srv/a/b'],
    ['/', '/'],
    ['..data', '/here/dir/..data'],
    ['a/..b', '/here/dir/a/..b'],
  ])('resolve the directory %j to %j', (given, directory) => {
    expect(parse('restore', given)).toEqual(restoreOf(directory))
  })

  it('accept a directory that looks like an option after --', () => {
    expect(parse('restore', '--', '-x')).toEqual(restoreOf('/here/dir/-x'))
  })

  it.each([['a/..'], ['/srv/a/../b'], ['a/./../b'], ['../a//..']])(
    'are refused if the path has a ".." that a symbolic link could redirect: %j',
    (directory) => {
      expect(() => parse('restore', directory)).toThrow('write it without ".."')
    },
  )

  it.each([
    ['ef53.b83afe7a1d37922f-21a0ad-18ea325e026cf9cc'],
    ['0123456789abcdef0123456789abcdef-2-0'],
    [`text-${'a1'.repeat(20)}`],
  ])('accept the volume name %s as status prints it', (volume) => {
    expect(parse('restore', volume, '--force')).toEqual({
      verb: 'restore',
      target: { beginning: volume, directory: undefined },
      isDry: false,
      isForced: true,
    })
    expect(parse('restore', `./${volume}`)).toEqual(restoreOf(`/here/dir/${volume}`))
  })

  it.each([
    [['logs'], { verb: 'logs', isFollowing: false, last: undefined, pod: undefined, age: undefined, isFailed: false }],
    [['logs', '-f'], { verb: 'logs', isFollowing: true, last: 10, pod: undefined, age: undefined, isFailed: false }],
    [
      ['logs', '-n', '3', '--pod', 'shop/cart'],
      { verb: 'logs', isFollowing: false, last: 3, pod: 'shop/cart', age: undefined, isFailed: false },
    ],
    [['gc'], { verb: 'gc', isDry: false, forget: undefined }],
    [['gc', '--dry-run', '--forget', '1.2-3-4'], { verb: 'gc', isDry: true, forget: '1.2-3-4' }],
    [
      ['journal', 'export', 'data'],
      { verb: 'journal', action: 'export', target: { directory: '/here/dir/data' }, file: '-', isForced: false },
    ],
    [
      ['journal', 'export', '1.2-3-4', '--output', 'a/../b', '--force'],
      {
        verb: 'journal',
        action: 'export',
        target: { beginning: '1.2-3-4', directory: undefined },
        file: '/here/dir/a/../b',
        isForced: true,
      },
    ],
    [
      ['journal', 'import', './x', '--at', 'mnt/', '--dry-run', '--json'],
      { verb: 'journal', action: 'import', file: '/here/dir/./x', at: '/here/dir/mnt', isDry: true },
    ],
    [
      ['journal', 'export', '/a', '--output', '-'],
      { verb: 'journal', action: 'export', target: { directory: '/a' }, file: '-', isForced: false },
    ],
    [
      ['logs', '--since', '1h30m', '--failed', '-n', '50'],
      { verb: 'logs', isFollowing: false, last: 50, pod: undefined, age: 5_400_000, isFailed: true },
    ],
    [['status', '-n', 'shop'], { ...STATUS, selection: { namespace: 'shop', of: undefined } }],
    [['status', 'shop/cart-0'], { ...STATUS, selection: { namespace: undefined, of: { pod: 'shop/cart-0' } } }],
    [['status', './dir'], { ...STATUS, selection: { namespace: undefined, of: { directory: '/here/dir/dir' } } }],
    [['status', 'fd01…'], { ...STATUS, selection: { namespace: undefined, of: { word: 'fd01' } } }],
    [['status', '-o', 'json'], { ...STATUS, form: 'json' }],
    [['status', '-oyaml', '--watch'], { ...STATUS, form: 'yaml', isWatching: true }],
    [['doctor', '--json'], { verb: 'doctor' }],
    [['completion', 'zsh'], { verb: 'completion', shell: 'zsh' }],
    [['help', '--man'], { verb: 'help', topic: undefined, isManual: true }],
    [['--version'], { verb: 'version' }],
  ])('%j are parsed', (argv, command) => {
    expect(parse(...argv)).toEqual(command)
  })

  it('cause a read of the working directory only if the given directory is relative', () => {
    const nowhere = () => {
      throw new Error('the working directory is gone')
    }
    expect(parseOperatorCommand(['restore', '/srv'], nowhere)).toEqual(restoreOf('/srv'))
  })

  it.each([
    [['help'], undefined],
    [['--help'], undefined],
    [['-h'], undefined],
    [['help', 'plan'], 'plan'],
    [['help', 'doctor'], 'doctor'],
    [['logs', '-h'], 'logs'],
    [['plan', '--help'], 'plan'],
    [['apply', '/srv', '-h'], 'apply'],
    [['restore', '--help'], 'restore'],
  ])('%j request the help', (argv, topic) => {
    expect(parse(...argv)).toEqual({ verb: 'help', topic, isManual: false })
  })

  it.each([
    [['plan', '/a'], '--fsgroup is missing: name the group, as in --fsgroup 2000'],
    [['plan', '--fsgroup', '1'], 'plan takes one directory, got none'],
    [['plan', '', '--fsgroup', '1'], 'plan takes one directory, got none'],
    [['plan', '/a', '/b', '--fsgroup', '1'], 'plan takes one directory, got ["/a","/b"]'],
    [['plan', '/a\ufffd', '--fsgroup', '1'], 'is not valid UTF-8'],
    [['plan', '/a', '--fsgroup'], '--fsgroup has no value: write a group, such as 2000'],
    [['plan', '/a', '--fsgroup', '--json'], '--fsgroup is "--json": a group is a decimal number'],
    [['plan', '/a', '--fsgroup='], '--fsgroup is "": a group is a decimal number'],
    [['plan', '/a', '--fsgroup=-1'], '--fsgroup is "-1": a group is a decimal number'],
    [['plan', '/a', '--fsgroup', '4294967295'], '--fsgroup is "4294967295"'],
    [['plan', '/a', '--fsgroup', 'users'], '--fsgroup is "users"'],
    [['plan', '/a', '--fsgroup', '1', '--fsgroup', '2'], '--fsgroup is given twice: keep one'],
    [
      ['plan', '/a', '--fsgroup', '1', '--fs-group-change-policy', 'always'],
      '--fs-group-change-policy is "always": use OnRootMismatch or Always',
    ],
    [['plan', '/a', '--fsgroup', '1', '--group-access'], '--group-access has no value: write keep or grant'],
    [['plan', '/a', '--fsgroup', '1', '--json=yes'], '--json takes no value'],
    [['plan', '/a', '--fsgroup', '1', '--no-json'], 'plan has no option "--no-json": it takes --fsgroup,'],
    [
      ['restore', '/a', '--fsgroup', '1'],
      'restore has no option "--fsgroup": it takes --dry-run, --force, --json, --help',
    ],
    [['restore', '/a', '-q'], 'restore has no option "-q"'],
    [['status', '--output', '/a'], '--output is for --prometheus: give both'],
    [['status', '--prometheus', '--output', 'a'], '--output is "a": write an absolute path'],
    [['status', '--prometheus', '--output'], '--output has no value: write a path'],
    [['status', '--prometheus', '--json'], '--json and --prometheus are two forms: keep one'],
    [['status', '-o', 'xml'], '--format is "xml": use json or yaml or wide or name'],
    [['status', '-o', 'name', '--json'], '-o name and --json are two forms: keep one'],
    [['status', '-o', 'json', '--prometheus'], '-o json and --prometheus are two forms: keep one'],
    [['status', '--prometheus', '--watch'], '--prometheus prints once: leave out --watch'],
    [['status', '--prometheus', 'a/b'], '--prometheus is about the whole node: leave out what selects'],
    [['status', 'a', 'b'], 'status takes one pod, mount or volume, got ["a","b"]: name one'],
    [['status', 'a/b/c'], 'status has "a/b/c": write NAMESPACE/POD, a path, or a volume as it names it'],
    [['status', 'a/b', '-n', 'c'], '--namespace is "c", and the pod "a/b": leave one out'],
    [['status', '-n', 'Shop'], '--namespace is "Shop": write the name of a namespace'],
    [['logs', '--since', 'yesterday'], '--since is "yesterday": write how long ago, such as 1h, 30m, 2d or 1h30m'],
    [['logs', '--since', ''], '--since is "": write how long ago'],
    [['mount', '/a', '{}'], 'there is no verb "mount": see "modekeep help"'],
    [['statsu'], 'there is no verb "statsu": did you mean status? see "modekeep help"'],
    [['help', 'constructor'], 'there is no verb "constructor": see "modekeep help"'],
    [['plan', '/a', '--fsgruop', '1'], 'plan has no option "--fsgruop": did you mean --fsgroup? It takes --fsgroup,'],
    [['restore', '/a', '--dry'], 'did you mean --dry-run?'],
    [['logs', '--lines', 'many'], '--lines is "many": write how many, such as 20'],
    [['logs', '--pod', '../..'], `--pod is "../..": write the pod's UID, or NAMESPACE/NAME`],
    [['logs', '/var/log'], 'logs is about the whole node, got "/var/log": leave it out'],
    [
      ['gc', '--forget', '/srv'],
      '--forget is "/srv": write a volume as "modekeep status" names it, or the beginning of its name',
    ],
    [['completion'], 'completion takes the name of a shell, got none: write bash, zsh or fish'],
    [['completion', 'tcsh'], 'completion takes the name of a shell, got "tcsh": write bash, zsh or fish'],
    [['help', 'plan', '--man'], '--man is a page about all verbs, got "plan": leave one out'],
    [['help', 'plan', 'apply'], 'help is about one verb, got also "apply": leave it out'],
    [['journal'], 'journal takes export or import, got none: write "journal export VOLUME" or "journal import FILE"'],
    [['journal', 'exprot', '/a'], 'journal takes export or import, got "exprot": write'],
    [['journal', 'export'], 'journal export takes one directory, got none: name one'],
    [['journal', 'export', 'a/..'], 'write it without ".."'],
    [['journal', 'import'], 'journal import takes one file, got none: name one'],
    [['journal', 'import', 'a', 'b'], 'journal import takes one file, got ["a","b"]: name one'],
    [['journal', 'import', 'a\ufffd'], 'is not valid UTF-8'],
    [['journal', 'import', 'a', '--at', 'b/..'], 'write it without ".."'],
    [['journal', 'import', 'a', '--at'], '--at has no value: write a directory after it'],
    [['journal', 'import', 'a', '--output', 'b'], '--output is for journal export: leave it out'],
    [['journal', 'export', 'a', '--dry-run'], '--dry-run is for journal import: leave it out'],
    [['journal', 'export', 'a', '--output', ''], '--output is "": write a path'],
    [['journal', 'export', 'a', '--json'], '--json needs stdout for its document: export with --output FILE'],
    [['journal', 'export', 'a', '--force', '--output=-'], '--force is for --output FILE: give both, or leave it out'],
    [['heal', '--watch', '--dry-run'], '--watch repairs and --dry-run does not: keep one'],
  ])('%j are refused with the remedy', (argv, sentence) => {
    expect(() => parse(...argv)).toThrow(sentence)
  })

  it('are refused with all faults in one message', () => {
    const all = /--fsgroup is "x".*--fs-group-change-policy is "y".*has no option "--z".*takes one directory/
    expect(() => parse('apply', '--fsgroup', 'x', '--fs-group-change-policy', 'y', '--z')).toThrow(all)
  })
})

describe('the first argument of modekeep', () => {
  it.each(OPERATOR_VERB_NAMES)(
    "the operator's verb %s has another name than every verb of kubelet, past and present",
    (word) => {
      expect(isFlexVolumeVerb(word)).toBe(false)
    },
  )

  it('a missing first argument prints the introduction, and an empty one is refused as an unknown verb', () => {
    expect(parse()).toMatchObject({ verb: 'help', isIntroduction: true })
    expect(() => parse('')).toThrow('there is no verb "": see "modekeep help"')
  })
})
