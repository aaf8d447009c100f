import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { getVerbForm, OPERATOR_VERB_NAMES } from '../../../src/cli/commands/index.ts'
import { formatManualPage, listOptionDescriptions } from '../../../src/cli/usage/help.ts'

const page = formatManualPage('1.2.3')

function run(program: string, args: readonly string[]) {
  const { stdout, stderr, status, error } = spawnSync(program, args, {
    input: page,
    encoding: 'utf8',
    timeout: 600_000,
  })
  if (error) throw error
  return { stdout, stderr, status }
}

function has(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { input: '' }).error === undefined
}

const withProgram = (name: string, program: string, isThere: boolean, from: string) =>
  isThere ? name : `${name} (skipped: there is no ${program}; run "apt-get install ${from}")`

describe('the man page', () => {
  it('lists every verb and each of its options, as help does', () => {
    for (const verb of OPERATOR_VERB_NAMES) {
      expect(page).toMatch(new RegExp(`^\\.SS modekeep ${verb.replace('-', '.*')}`, 'm'))
      const terms = listOptionDescriptions(verb).map(([term]) => term)
      expect(terms).toHaveLength(Object.keys(getVerbForm(verb).options).length)
      for (const term of terms) {
        expect(page).toContain(`.B ${term.replaceAll('-', '\\-')}\n`)
      }
    }
  })

  it('has no unintended roff request', () => {
    const requests = page.split('\n').filter((line) => /^[.']/.test(line))
    expect(requests.filter((line) => !/^\.(TH|SH|SS|TP|B|PP|RS|RE|nf|fi|nh|ad)\b/.test(line))).toEqual([])
  })

  const hasGroff = has('groff', ['-v'])
  it.skipIf(!hasGroff)(withProgram('is accepted by groff without a warning', 'groff', hasGroff, 'groff-base'), () => {
    expect(run('groff', ['-man', '-ww', '-z', '-Tutf8'])).toEqual({ stdout: '', stderr: '', status: 0 })
    const { stdout } = run('groff', ['-man', '-Tascii', '-P-c', '-P-b', '-P-o', '-P-u'])
    expect(stdout).toContain('modekeep restore DIR|VOLUME [options]')
    expect(stdout).toContain('--kubelet-dir DIR')
    expect(stdout).toContain('modekeep doctor || echo "this node needs a look"')
  })

  const hasMandoc = has('mandoc', ['-V'])
  it.skipIf(!hasMandoc)(withProgram('is accepted by mandoc without a warning', 'mandoc', hasMandoc, 'mandoc'), () => {
    const { stdout, stderr } = run('mandoc', ['-man', '-T', 'lint', '-W', 'warning'])
    // One version is always the same text, so it has no date.
    expect(stdout.split('\n').filter((line) => !/missing date, using "": TH$/.test(line))).toEqual([''])
    expect(stderr).toBe('')
  })
})
