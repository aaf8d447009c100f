import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OPERATOR_VERB_NAMES } from '../../../src/cli/commands/index.ts'
import { formatCompletionScript } from '../../../src/cli/usage/completion.ts'

let top: string
beforeAll(() => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-completion-`)
  fs.mkdirSync(`${top}/data one`)
  fs.mkdirSync(`${top}/data-two`)
  fs.writeFileSync(`${top}/data-file`, '')
  fs.writeFileSync(`${top}/completion.bash`, formatCompletionScript('bash'))
  fs.writeFileSync(`${top}/_modekeep`, formatCompletionScript('zsh'))
  fs.writeFileSync(`${top}/modekeep.fish`, formatCompletionScript('fish'))
})
afterAll(() => fs.rmSync(top, { recursive: true }))

function has(program: string): boolean {
  return spawnSync(program, ['--version']).error === undefined
}

const withProgram = (program: string, name: string) =>
  has(program) ? name : `${name} (skipped: there is no ${program}; run "apt-get install ${program}")`

function run(program: string, args: readonly string[]): string {
  const { stdout, stderr, status, error } = spawnSync(program, args, { cwd: top, encoding: 'utf8', timeout: 600_000 })
  if (error) throw error
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout
}

/** What a shell offers after these words, of which the last is begun. */
const CASES: readonly (readonly [readonly string[], readonly string[]])[] = [
  [['st'], ['status']],
  [['re'], ['restore']],
  [['plan', '--fsg'], ['--fsgroup']],
  [['restore', '--f'], ['--force']],
  [
    ['plan', '--fs-group-change-policy', ''],
    ['Always', 'OnRootMismatch'],
  ],
  [['plan', '--group-access', 'g'], ['grant']],
  [
    ['restore', 'data'],
    ['data one', 'data-two'],
  ],
  [['heal', '--kubelet-subpaths', '--kubelet-dir', 'data-'], ['data-two']],
  [
    ['completion', ''],
    ['bash', 'fish', 'zsh'],
  ],
  [
    ['status', '-o', ''],
    ['json', 'name', 'wide', 'yaml'],
  ],
  [['logs', '-n', ''], []],
  [['help', 'do'], ['doctor']],
  [
    ['journal', ''],
    ['export', 'import'],
  ],
  [
    ['journal', 'import', 'data'],
    ['data one', 'data-file', 'data-two'],
  ],
  [['journal', 'export', 'x', '--output', 'data-f'], ['data-file']],
]

describe.skipIf(!has('bash'))(withProgram('bash', 'bash'), () => {
  /** As bash calls the function when tab is pressed. */
  const complete = (words: readonly string[]) => {
    const script = `source ./completion.bash
      spec=$(complete -p modekeep) && [[ $spec == *"-F _modekeep modekeep" ]] || exit 1
      COMP_WORDS=(modekeep "$@") COMP_CWORD=$# COMP_TYPE=9
      _modekeep modekeep "\${@: -1}" x
      if ((\${#COMPREPLY[@]})); then printf '%s\\n' "\${COMPREPLY[@]}"; fi`
    return run('bash', ['--norc', '-c', script, 'bash', ...words])
      .split('\n')
      .filter(Boolean)
      .sort()
  }

  it.each(CASES)('bash completion of %j offers %j', (words, offered) => {
    expect(complete(words)).toEqual(offered)
  })

  it('bash completion offers every verb, and after a verb all its options', () => {
    expect(complete([''])).toEqual(expect.arrayContaining(OPERATOR_VERB_NAMES))
    const logs = ['--failed', '--follow', '--help', '--json', '--lines', '--pod', '--since', '-f', '-h', '-n']
    expect(complete(['logs', '-'])).toEqual(logs)
  })

  it('bash completion completes a value after "=", which bash splits into a separate word', () => {
    expect(complete(['plan', '--fs-group-change-policy', '=', 'Al'])).toEqual(['Always'])
    expect(complete(['plan', '--fs-group-change-policy', '='])).toEqual(['Always', 'OnRootMismatch'])
  })

  it('bash completion offers nothing for a value without known candidates', () => {
    expect(complete(['plan', '--fsgroup', ''])).toEqual([])
    expect(complete(['status', ''])).toEqual([])
    expect(complete(['nothing', ''])).toEqual([])
  })
})

describe.skipIf(!has('fish'))(withProgram('fish', 'fish'), () => {
  const complete = (words: readonly string[]) => {
    const line = ['modekeep', ...words].join(' ')
    const script = 'source ./modekeep.fish; complete -C "$argv[1]"'
    return run('fish', ['--no-config', '-c', script, line])
      .split('\n')
      .filter(Boolean)
      .map((shown) => shown.replace(/\t.*/, '').replaceAll('\\', '').replace(/\/$/, ''))
      .sort()
  }

  it.each(CASES)('fish completion of %j offers %j', (words, offered) => {
    expect(complete(words)).toEqual(offered)
  })

  it('fish completion offers every verb, and after a verb all its options', () => {
    expect(complete([''])).toEqual([...OPERATOR_VERB_NAMES].sort())
    const logs = ['--failed', '--follow', '--help', '--json', '--lines', '--pod', '--since']
    expect(complete(['logs', '--'])).toEqual(logs)
  })
})

describe.skipIf(!has('zsh'))(withProgram('zsh', 'zsh'), () => {
  /** Types words at a zsh on a terminal of its own, asks for the choices, and reads on until the expected one is shown. */
  const complete = (words: readonly string[], offered: string) => {
    const script = `
      zmodload zsh/zpty
      zpty z zsh -f -i
      zpty -w z 'fpath=($PWD $fpath); autoload -Uz compinit && compinit -u -D; bindkey "^I" list-choices; print READ""Y'
      zpty -r z before '*READY*'
      zpty -n -w z "modekeep $1"$'\\t'
      zpty -r z shown "*$2*"
      zpty -d z
      print -r -- "$shown"`
    return run('zsh', ['-f', '-c', script, 'zsh', words.join(' '), offered])
  }

  it('the zsh completion is a script that zsh can parse', () => {
    run('zsh', ['-f', '-n', '_modekeep'])
  })

  it.each([
    [['st'], 'status'],
    [['plan', '--fs'], '--fsgroup'],
    [['plan', '--fs-group-change-policy', 'Al'], 'Always'],
    [['completion', 'z'], 'zsh'],
    [['help', 'doc'], 'doctor'],
    [['journal', 'im'], 'import'],
    [['journal', 'import', 'data-f'], 'data-file'],
    [['restore', 'data-t'], 'data-two'],
  ])('zsh completion of %j offers %s', (words, offered) => {
    expect(complete(words, offered)).toContain(offered)
  })
})
