import * as fs from 'node:fs'
import { hashPackageNames, provideCached } from '../../scripts/fetch/cache.ts'
import { provideBusybox, unpackPackages } from '../../scripts/fetch/packages.ts'
import { unpackSuitePackages } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { LAB_KERNELS, type LabKernel } from './kernels.ts'

const KERNEL_PACKAGES = ['user-mode-linux', 'libc6', 'libgcc-s1']
/** Servers that no other test needs. They run in the guest with the machine's own libraries. */
const SERVER_PACKAGES = ['nfs-kernel-server', 'libevent-core-2.1-7', 'libwrap0']

/** A kernel in the cache. */
export interface ProvidedKernel extends LabKernel {
  /** Has `usr/bin/linux.uml`, its modules in `usr/lib/uml/modules`, and the C library that it was linked against. */
  root: string
  /** The kernel's own version, as `uname -r` prints it in the guest. */
  release: string
  /** Debian's version of the package. */
  packageVersion: string
}

export interface ProvidedLab {
  kernels: ProvidedKernel[]
  /** A statically linked busybox. */
  busybox: string
  /** The directory with `usr/sbin` of the servers. */
  servers: string
  /** One sentence for each kernel that cannot be had. */
  missing: string[]
}

/**
 * Fetches what the lab needs into the cache. Nothing is installed.
 * @param versions the kernels, as `LAB_KERNELS` has them
 * @throws {UnavailableError} where no kernel can be had
 */
export function provideLab(versions: readonly string[], clock: Clock): ProvidedLab {
  const { busybox } = clock.measure('busybox', provideBusybox)
  const servers = clock.measure('servers', provideServers)
  const kernels: ProvidedKernel[] = []
  const missing: string[] = []
  for (const kernel of LAB_KERNELS.filter(({ version }) => versions.includes(version))) {
    const what = `Linux ${kernel.version} of Debian ${kernel.suite}`
    try {
      kernels.push(clock.measure(what, () => provideKernel(kernel)))
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
      missing.push(`${what}: ${error.message}`)
    }
  }
  if (kernels.length === 0) throw new UnavailableError(missing.join('; '))
  return { kernels, busybox, servers, missing }
}

/** @throws {UnavailableError} where it cannot be fetched, or the suite has moved on to another kernel */
function provideKernel(kernel: LabKernel): ProvidedKernel {
  const { version, suite } = kernel
  const root = provideCached(`linux-${version}-${suite}-${hashPackageNames(KERNEL_PACKAGES)}`, (directory) => {
    const versions = unpackSuitePackages(suite, KERNEL_PACKAGES, directory)
    const [release = ''] = fs.readdirSync(`${directory}/usr/lib/uml/modules`)
    if (!release.startsWith(`${version}.`))
      throw new UnavailableError(`the suite has Linux ${release} by now, and ${version} is asked for`)
    fs.writeFileSync(
      `${directory}/versions.json`,
      JSON.stringify({ release, packageVersion: versions['user-mode-linux'] }),
    )
  })
  return { ...kernel, root, ...JSON.parse(fs.readFileSync(`${root}/versions.json`, 'utf8')) }
}

function provideServers(): string {
  return provideCached(`servers-${hashPackageNames(SERVER_PACKAGES)}`, (directory) => {
    unpackPackages(SERVER_PACKAGES, directory)
  })
}

// Run by itself it fills the cache for a later run.
if (import.meta.main)
  provideLab(
    LAB_KERNELS.map(({ version }) => version),
    new Clock(console.log),
  )
