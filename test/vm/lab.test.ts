import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addSkipReason, explainMissing } from '../helpers/needs.ts'
import { packInitrd } from './initrd.ts'
import type { ProvidedKernel } from './kernels.ts'
import { BOOT_NAMES, isBootSelected, type LabOptions, readOptions } from './options.ts'
import { selectModuleFiles } from './qemu.ts'
import { formatLabTables, type KernelResults, parseGuestTests, parseListCases, tallyOutcomes } from './report.ts'
import { parseLoggedAccesses } from './security/selinux.ts'

describe('the options of the lab', () => {
  it('without options every kernel and every boot is chosen', () => {
    const options = readOptions([]) as LabOptions
    expect(options).toMatchObject({
      kernels: ['5.10', '6.1', '6.12', '7.2'],
      architectures: ['x64', 'arm64'],
      isQuick: false,
    })
    expect(BOOT_NAMES.filter((name) => !isBootSelected(options, name))).toEqual([])
  })

  it('a quick run has the cases of the oldest kernel, on x64', () => {
    const quick = { kernels: ['6.1'], architectures: ['x64'], boots: ['cases'], isQuick: true }
    expect(readOptions(['--quick'])).toMatchObject(quick)
  })

  it("arm64 has the boot of Debian's own kernels alone", () => {
    const options = readOptions(['--arch', 'arm64', '--kernel', '6.12']) as LabOptions
    expect(BOOT_NAMES.filter((name) => isBootSelected(options, name))).toEqual(['debian'])
  })

  it.each([
    [['--kernel', '5.4'], '--kernel "5.4" is unknown: use 5.10, 6.1, 6.12, 7.2'],
    [['--boot', 'cases,none'], '--boot "none" is unknown: use cases, apparmor, selinux, '],
    [['--arch', 'riscv64'], '--arch "riscv64" is unknown: use x64, arm64'],
    [
      ['--arch', 'arm64', '--boot', 'debian,cases'],
      '--boot "cases" needs x64, and --arch has arm64 alone: use --boot debian',
    ],
    [
      ['--kernel', '5.10', '--boot', 'cases'],
      '--boot "cases" needs Linux 5.12 or newer, and --kernel has 5.10 alone: use --boot debian',
    ],
    [['--arch', 'arm64', '--quick'], '--quick needs x64, and --arch has arm64 alone: use --boot debian'],
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
    expect(readTable([{ kernel: createKernel('6.1.176', 'user-mode-linux'), outcomes, tally }])).toEqual([
      ['case', '6.1.176'],
      ['works', 'ok'],
      ['fails', 'FAILED'],
      ['tests of kernel', '1 FAILED'],
    ])
  })

  it("the cases of Debian's own kernels are a table of their own, with the processor of each", () => {
    const cases = parseListCases('passed\tone works\t\nfailed\ttwo works\tthe group is 100\n')
    expect(tallyOutcomes('Linux 6.12.117 arm64', cases)).toMatchObject({
      passed: 1,
      failed: 1,
      failures: ['Linux 6.12.117 arm64: vm/list > two works\n  the group is 100'],
    })
    expect(
      readTable([
        { kernel: createKernel('6.1.176', 'user-mode-linux'), outcomes: [], tally },
        { kernel: createKernel('6.12.117 x64', 'linux-image-amd64'), outcomes: cases.slice(0, 1), tally },
        { kernel: createKernel('6.12.117 arm64', 'linux-image-arm64'), outcomes: cases, tally },
      ]),
    ).toEqual([
      ['case', '6.1.176'],
      [''],
      ['case', '6.12.117 x64 6.12.117 arm64'],
      ['one works', 'ok', 'ok'],
      ['two works', 'FAILED'],
    ])
  })
})

function createKernel(name: string, packageName: string): ProvidedKernel {
  return { version: '6.1', suite: 'bookworm', root: '', name, arch: 'x64', packageName, packageVersion: '1' }
}

const readTable = (results: readonly KernelResults[]) =>
  formatLabTables(results)
    .split('\n')
    .map((line) => line.trimEnd().split(/ {2,}/))

it('the modules of a kernel are chosen with what they depend on, and a module that is built in is left out', () => {
  const dependencies = [
    'kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz',
    'kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz',
    'kernel/net/9p/9pnet.ko.xz:',
    'kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko.xz',
    '',
  ]
  expect(selectModuleFiles(dependencies.join('\n'), ['virtio_pci', '9pnet_virtio', '9p'])).toEqual([
    'kernel/fs/9p/9p.ko.xz',
    'kernel/net/9p/9pnet.ko.xz',
    'kernel/fs/netfs/netfs.ko.xz',
    'kernel/net/9p/9pnet_virtio.ko',
  ])
})

describe("the accesses that SELinux writes to the kernel's log", () => {
  const AVC = '[    5.1] audit: type=1400 audit(1796011153.047:12): avc:  denied  { read write } for  pid=9 comm="fs"'

  it('are read with the domain, the class, the permissions and the type', () => {
    const line = `${AVC} name="a" scontext=system_u:system_r:kubelet_t:s0 tcontext=system_u:object_r:etc_t:s0:c1,c2 tclass=file permissive=0`
    expect(parseLoggedAccesses(`${line}\n[    5.2] loop0: detected capacity change\n`)).toEqual([
      { verdict: 'denied', domain: 'kubelet_t', access: 'file { read write } etc_t' },
    ])
  })

  it("of the guest's own processes are left out", () => {
    const line = `${AVC} scontext=system_u:system_r:kernel_t:s0 tcontext=system_u:object_r:etc_t:s0 tclass=file permissive=1`
    expect(parseLoggedAccesses(line)).toEqual([])
  })
})
