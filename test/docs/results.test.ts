import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createTestResultsTable,
  insertResultsTable,
  readTestResults,
  type TestResults,
} from '../../scripts/docs/results.ts'
import { writeResults } from '../helpers/results.ts'
import { ROOT } from './pages.ts'

const README = fs.readFileSync(join(ROOT, 'README.md'), 'utf8')

function directory(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'modekeep-results-'))
  onTestFinished(() => fs.rmSync(path, { recursive: true }))
  return path
}

describe("the README's table of tested environments", () => {
  it('equals the output of "npm run docs" from docs/results', () => {
    expect(readTestResults()).not.toEqual([])
    expect(README).toBe(insertResultsTable(README, createTestResultsTable(readTestResults())))
  })

  it('has a row for each run with its failures, and nothing else', () => {
    const kernel = '6.1.0-13-amd64'
    const run: TestResults = {
      suite: 'test:kubelet',
      date: '2026-01-02',
      kernel,
      cases: { passed: 3, failed: 1, notRun: 2 },
    }
    const text = createTestResultsTable([
      { ...run, kubernetes: '1.36.1', containerd: '2.1.0' },
      { ...run, suite: 'test', fileSystems: ['ext4'], distribution: 'Debian 12', processor: 'x86_64' },
    ])
    const [, , first, second, last, ...more] = text.split('\n')
    expect(first).toContain(
      'Kubernetes 1.36.1, containerd 2.1.0 | Linux 6.1.0, distribution and processor not noted | 3 passed, 1 failed, 2 not run | 2026-01-02',
    )
    expect(second).toContain('ext4 | Linux 6.1.0, Debian 12, x86_64 |')
    expect(last).toContain('not tried')
    expect(more).toEqual([])
  })

  it('names each runtime that ran all cases', () => {
    const cases = { passed: 4, failed: 0, notRun: 0 }
    const text = createTestResultsTable([
      { suite: 'test:nri', date: '2026-01-02', kernel: '6.1.0', containerd: ['1.7.24', '2.1.9'], cases },
    ])
    expect(text).toContain('containerd 1.7.24 and 2.1.9')
  })

  it('is made from the files that a run writes', () => {
    const place = directory()
    writeResults(join(place, 'a.json'), 'test', { passed: 1, failed: 0, skipped: 2 }, { fileSystems: ['ext4', 'xfs'] })
    expect(readTestResults(place)).toMatchObject([
      { suite: 'test', fileSystems: ['ext4', 'xfs'], cases: { passed: 1, failed: 0, notRun: 2 } },
    ])
    expect(fs.readFileSync(join(place, 'a.json'), 'utf8')).toContain('"fileSystems": ["ext4", "xfs"],\n')
  })

  it('is made from files with each item of a long list on a line of its own, as the formatter has it', () => {
    const place = directory()
    const kernelPackages = ['amd64', 'arm64', 'riscv64'].map(
      (name) => `linux-image-${name} 6.12.117-1 of Debian trixie`,
    )
    writeResults(join(place, 'a.json'), 'test:vm', { passed: 1, failed: 0, skipped: 0 }, { kernelPackages })
    expect(readTestResults(place)).toMatchObject([{ kernelPackages }])
    expect(fs.readFileSync(join(place, 'a.json'), 'utf8')).toContain(
      `"kernelPackages": [\n    "${kernelPackages.join('",\n    "')}"\n  ],`,
    )
  })

  it.each([
    ['cases.failed', { passed: 1, notRun: 0 }, '2026-01-02'],
    ['date', { passed: 1, failed: 0, notRun: 0 }, 'yesterday'],
  ])('is refused if a file has no %s', (key, cases, date) => {
    const place = directory()
    fs.writeFileSync(join(place, 'b.json'), JSON.stringify({ suite: 'test', date, kernel: '6', cases }))
    expect(() => readTestResults(place)).toThrow(`docs/results/b.json: ${key}: `)
  })
})
