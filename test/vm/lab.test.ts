import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addSkipReason, explainMissing } from '../helpers/needs.ts'
import { packInitrd } from './initrd.ts'
import { readOptions } from './options.ts'
import { formatLabTable, parseGuestTests, tallyOutcomes } from './report.ts'

describe('the options of the lab', () => {
  it('without options every kernel and every boot is chosen', () => {
    expect(readOptions([])).toMatchObject({ kernels: ['6.1', '6.12', '7.2'], boots: [], isQuick: false })
  })

  it('a quick run has the cases of the oldest kernel', () => {
    expect(readOptions(['--quick'])).toMatchObject({ kernels: ['6.1'], boots: ['cases'], isQuick: true })
  })

  it.each([
    [['--kernel', '5.4'], '--kernel "5.4" is unknown: use 6.1, 6.12, 7.2'],
    [['--boot', 'cases,none'], '--boot "none" is unknown: use cases, apparmor, '],
    [['--kernels', '6.1'], "Unknown option '--kernels'"],
  ])('%j is refused with what is possible', (args, message) => {
    expect(() => readOptions(args)).toThrow(message)
  })
})

const noCpio = explainMissing('busybox')

describe.skipIf(noCpio !== '')(addSkipReason('the initial RAM disk', noCpio), () => {
  it('another program unpacks the files with their content and modes', () => {
    const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-initrd-`)
    onTestFinished(() => fs.rmSync(directory, { recursive: true }))
    const archive = packInitrd([
      { path: 'bin', content: Buffer.alloc(0), mode: 0o040755 },
      { path: 'bin/tool', content: Buffer.from('twelve bytes'), mode: 0o100755 },
      { path: 'init', content: Buffer.from('odd'), mode: 0o100700 },
    ])
    execFileSync('busybox', ['cpio', '-i'], { cwd: directory, input: archive, stdio: ['pipe', 'ignore', 'ignore'] })
    expect(fs.readFileSync(`${directory}/bin/tool`, 'utf8')).toBe('twelve bytes')
    expect(fs.readFileSync(`${directory}/init`, 'utf8')).toBe('odd')
    expect(fs.statSync(`${directory}/init`).mode & 0o777).toBe(0o700)
  })
})

describe('the results of a guest', () => {
  const test = (title: string, status: string, failureMessages: string[] = []) => ({
    title,
    fullName: `a group ${title}`,
    status,
    failureMessages,
  })
  const text = JSON.stringify({
    testResults: [
      {
        name: '/any/test/vm/cases/nfs.vm.ts',
        assertionResults: [test('works', 'passed'), test('fails', 'failed', ['why'])],
      },
      { name: '/any/test/kernel/locks.test.ts', assertionResults: [test('one', 'passed'), test('two', 'pending')] },
      { name: '/any/test/kernel/broken.test.ts', message: 'cannot be loaded', assertionResults: [] },
    ],
  })
  const outcomes = parseGuestTests(text)
  const tally = tallyOutcomes('Linux 6.1', outcomes)

  it('are counted with the failures of each test, and a file that cannot be loaded has failed', () => {
    expect(tally).toMatchObject({ passed: 2, failed: 2, skipped: 1 })
    expect(tally.failures).toEqual([
      'Linux 6.1: vm/cases/nfs > fails\n  why',
      'Linux 6.1: kernel/broken > the file is loaded\n  cannot be loaded',
    ])
  })

  it("are a table with a row for each case of the lab and one for the project's own tests", () => {
    const kernel = { version: '6.1', suite: 'bookworm', root: '', release: '6.1.176', packageVersion: '1' } as const
    expect(
      formatLabTable([{ kernel, outcomes, tally }])
        .split('\n')
        .map((line) => line.trimEnd().split(/ {2,}/)),
    ).toEqual([
      ['case', '6.1.176'],
      ['works', 'ok'],
      ['fails', 'FAILED'],
      ['tests of kernel', '1 FAILED'],
    ])
  })
})
