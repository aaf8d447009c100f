import { describe, expect, it } from 'vitest'
import { parseCommand } from '../../src/operator/command.ts'

const parse = (...argv: string[]) => parseCommand(argv, () => '/here/dir')

describe('an operator’s arguments', () => {
  it('are complete with a directory and a group; the rest has the defaults of a pod', () => {
    expect(parse('plan', '/srv/data', '--fsgroup', '2000')).toEqual({
      verb: 'plan',
      directory: '/srv/data',
      order: { group: 2000, access: 'keep', policy: 'OnRootMismatch' },
    })
  })

  it('may come in any order, with = or without', () => {
    const argv = ['--policy=Always', '--json', '--group-access', 'grant', '/srv/data', '--fsgroup=0']
    expect(parse('apply', ...argv)).toEqual({
      verb: 'apply',
      directory: '/srv/data',
      order: { group: 0, access: 'grant', policy: 'Always' },
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
  ])('name the directory %j as %j', (given, directory) => {
    expect(parse('restore', given)).toEqual({ verb: 'restore', directory })
  })

  it('take a directory that looks like an option after --', () => {
    expect(parse('restore', '--', '-x')).toEqual({ verb: 'restore', directory: '/here/dir/-x' })
  })

  it.each([['a/..'], ['/srv/a/../b'], ['a/./../b'], ['../a//..']])(
    'do not lead down and up again, which a link could bend: %j',
    (directory) => {
      expect(() => parse('restore', directory)).toThrow('write it without ".."')
    },
  )

  it('do not ask where a relative directory starts when there is none', () => {
    const nowhere = () => {
      throw new Error('the working directory is gone')
    }
    expect(parseCommand(['restore', '/srv'], nowhere)).toEqual({ verb: 'restore', directory: '/srv' })
  })

  it.each([
    [['help'], undefined],
    [['--help'], undefined],
    [['-h'], undefined],
    [['help', 'plan'], 'plan'],
    [['help', 'constructor'], undefined],
    [['plan', '--help'], 'plan'],
    [['apply', '/srv', '-h'], 'apply'],
    [['restore', '--help'], 'restore'],
  ])('%j ask for help', (argv, topic) => {
    expect(parse(...argv)).toEqual({ verb: 'help', topic })
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
    [['plan', '/a', '--fsgroup', '1', '--policy', 'always'], '--policy is "always": use OnRootMismatch or Always'],
    [['plan', '/a', '--fsgroup', '1', '--group-access'], '--group-access has no value: write keep or grant'],
    [['plan', '/a', '--fsgroup', '1', '--json=yes'], '--json takes no value'],
    [['plan', '/a', '--fsgroup', '1', '--no-json'], 'plan has no option "--no-json": it takes --fsgroup,'],
    [['restore', '/a', '--fsgroup', '1'], 'restore has no option "--fsgroup": it takes --json, --help'],
    [['restore', '/a', '-q'], 'restore has no option "-q"'],
    [['status', '--output', '/a'], '--output is for --prometheus: give both'],
    [['status', '--prometheus', '--output', 'a'], '--output is "a": write an absolute path'],
    [['status', '--prometheus', '--output'], '--output has no value: write a path'],
    [['status', '--prometheus', '--json'], '--json and --prometheus are two forms: keep one'],
    [['mount', '/a', '{}'], 'there is no verb "mount": see "modekeep help"'],
  ])('%j are refused with the way out', (argv, sentence) => {
    expect(() => parse(...argv)).toThrow(sentence)
  })

  it('are refused with all their faults at once', () => {
    const all = /--fsgroup is "x".*--policy is "y".*has no option "--z".*takes one directory/
    expect(() => parse('apply', '--fsgroup', 'x', '--policy', 'y', '--z')).toThrow(all)
  })
})
