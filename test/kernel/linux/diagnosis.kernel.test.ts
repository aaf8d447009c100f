import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type KernelFeature, type KernelFeatureName, probeKernelFeatures } from '../../../src/kernel/linux/diagnosis.ts'
import { linuxMounts } from '../../../src/kernel/linux/mounts.ts'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { type Lacking, refuseCalls } from '../../helpers/refuse.ts'
import { isRoot } from '../../helpers/stage.ts'

const TESTED_MODULE_URL = `${import.meta.dirname}/../../../src/kernel/linux/diagnosis.ts`

/** Returns the features that a process under a command finds. */
function probedUnder(...command: string[]): KernelFeature[] {
  const ask = `
    const { probeKernelFeatures } = await import(${JSON.stringify(TESTED_MODULE_URL)})
    console.log(JSON.stringify(probeKernelFeatures()))`
  const [name = '', ...args] = [...command, process.execPath, '--input-type=module', '-e', ask]
  return JSON.parse(execFileSync(name, args, { encoding: 'utf8' }))
}

const EPERM = 1
const WITHOUT_FSOPEN: KernelFeatureName[] = ['fsopen', 'mount_setattr', 'idmapped tmpfs']

describe.skipIf(!isRoot)(addSkipReason('the probe of kernel features', cannotMountWith('unshare')), () => {
  const here = probeKernelFeatures()
  /** Lists features of this kernel that a process under a command lacks. */
  const missing = (found: KernelFeature[]) =>
    found.filter(({ works }, at) => !works && here[at]?.works === true).map(({ name }) => name)

  const onThisKernel = (names: readonly KernelFeatureName[]) =>
    names.filter((name) => here.some((one) => one.name === name && one.works))

  it("finds this kernel's features, and leaves no mount, descriptor or process", () => {
    const children = () => fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
    const seen = () => [linuxMounts.table(), fs.readdirSync('/proc/self/fd').length, children()]
    const before = seen()
    expect(probeKernelFeatures()).toEqual(here)
    expect(seen()).toEqual(before)
    // Any kernel that runs these tests has the features that modekeep requires.
    for (const name of ['open_tree', 'fsopen', 'mount_setattr', 'statx mount ids']) {
      expect(here).toContainEqual({ name, works: true, detail: '' })
    }
  })

  it.each<[Lacking, KernelFeatureName[], RegExp]>([
    ['open_tree', ['open_tree'], /ENOSYS.*does not have it/],
    ['fsopen', WITHOUT_FSOPEN, /ENOSYS/],
    ['openat2', ['openat2'], /ENOSYS/],
    ['mount_setattr', ['mount_setattr', 'idmapped tmpfs'], /ENOSYS/],
    ['fchmodat2', ['fchmodat2'], /ENOSYS/],
    ['listxattrat', ['listxattrat'], /ENOSYS/],
    ['MOVE_MOUNT_BENEATH', ['MOVE_MOUNT_BENEATH'], /EINVAL/],
    ['FS_IOC_GETFSUUID', ['FS_IOC_GETFSUUID'], /ENOTTY/],
  ])('reports a kernel without %s, with its error', (what, names, detail) => {
    const found = probedUnder(...refuseCalls([what]))
    expect(missing(found)).toEqual(onThisKernel(names))
    for (const { name, works, detail: said } of found) {
      if (works) expect(said).toBe('')
      else if (names.includes(name)) expect(said).toMatch(detail)
    }
  })

  it('reports a feature as missing if a seccomp filter forbids it', () => {
    const found = probedUnder(...refuseCalls(['fchmodat2', 'listxattrat'], EPERM))
    for (const name of ['fchmodat2', 'listxattrat']) {
      expect(found).toContainEqual({ name, works: false, detail: expect.stringContaining('EPERM'), errno: 'EPERM' })
    }
  })

  it('reports user namespaces and idmapped mounts as missing if the node allows none', () => {
    const off = 'echo 0 > /proc/sys/user/max_user_namespaces && exec unshare --mount "$@"'
    const found = probedUnder('unshare', '--user', '--map-root-user', 'sh', '-c', off, 'sh')
    // Such a process may not clone a mount without the mounts on it, because they hide files that their owner wants
    // hidden.
    expect(missing(found).filter((name) => name !== 'open_tree')).toEqual(
      onThisKernel(['user namespace', 'idmapped tmpfs']),
    )
  })
})
