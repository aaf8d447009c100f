import * as fs from 'node:fs'
import { buildProgram, DRIVER_ENTRY_FILE } from '../../scripts/build/program.ts'
import type { Architecture } from '../../scripts/build/runtime.ts'
import { hashPackageNames, provideCached } from '../../scripts/fetch/cache.ts'
import { provideBusybox, unpackPackages } from '../../scripts/fetch/packages.ts'
import { unpackSuitePackages } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { type DebianKernel, type EmulatorFiles, provideDebianKernel, provideEmulator } from './debian-kernels.ts'
import { LAB_KERNELS, type LabKernel, type ProvidedKernel, UML_PACKAGE } from './kernels.ts'
import { BOOT_NAMES, isBootSelected, type LabOptions, readOptions } from './options.ts'
import { provideSelinuxPolicy } from './selinux-policy.ts'

const UML_PACKAGES = [UML_PACKAGE, 'libc6', 'libgcc-s1']
/** Servers that no other test needs. They run in the guest with the machine's own libraries. */
const SERVER_PACKAGES = ['nfs-kernel-server', 'libevent-core-2.1-7', 'libwrap0']

/** What the boots of Debian's own kernels need. */
export interface EmulatedGuest {
  kernel: DebianKernel
  emulator: EmulatorFiles
  /** The executable for the guest's processor. */
  program: Buffer
}

export interface ProvidedLab {
  umlKernels: ProvidedKernel[]
  emulatedGuests: EmulatedGuest[]
  /** A statically linked busybox. */
  busybox: string
  /** The directory with `usr/sbin` of the servers; '' where no chosen boot has them. */
  servers: string
  /** The directory with the SELinux policy; undefined where it is not needed or cannot be had. */
  policy: string | undefined
  /** One sentence for each kernel, and for the policy, that cannot be had. */
  missing: string[]
}

/**
 * Fetches what the chosen boots need into the cache, and builds the executable for each processor. Nothing is installed.
 * @throws {UnavailableError} where no kernel can be had
 */
export async function provideLab(options: LabOptions, clock: Clock): Promise<ProvidedLab> {
  const missing: string[] = []
  const attempt: Attempt = async (what, provide) => {
    try {
      return await clock.wait(what, async () => provide())
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
      missing.push(`${what}: ${error.message}`)
      return undefined
    }
  }
  const { busybox } = clock.measure('busybox', provideBusybox)
  const kernels = LAB_KERNELS.filter(({ version }) => options.kernels.includes(version))
  const lab: ProvidedLab = { umlKernels: [], emulatedGuests: [], busybox, servers: '', policy: undefined, missing }
  if (BOOT_NAMES.some((name) => name !== 'debian' && isBootSelected(options, name))) {
    lab.servers = clock.measure('servers', provideServers)
    for (const kernel of kernels.filter(({ isTooOld }) => !isTooOld)) {
      const provided = await attempt(nameSuite(kernel), () => provideUmlKernel(kernel))
      if (provided) lab.umlKernels.push(provided)
    }
  }
  if (isBootSelected(options, 'selinux')) lab.policy = await attempt('the SELinux policy', provideSelinuxPolicy)
  if (isBootSelected(options, 'debian'))
    lab.emulatedGuests = await provideEmulatedGuests(kernels, options.architectures, busybox, attempt)
  if (lab.umlKernels.length + lab.emulatedGuests.length === 0) throw new UnavailableError(missing.join('; '))
  return lab
}

/** Returns undefined where something cannot be had, after noting the reason. */
type Attempt = <T>(what: string, provide: () => T | Promise<T>) => Promise<T | undefined>

async function provideEmulatedGuests(
  kernels: readonly LabKernel[],
  architectures: readonly Architecture[],
  busybox: string,
  attempt: Attempt,
): Promise<EmulatedGuest[]> {
  const guests: EmulatedGuest[] = []
  const emulator = await attempt('QEMU', provideEmulator)
  if (!emulator) return guests
  for (const arch of architectures) {
    const program = await attempt(`modekeep for ${arch}`, () => buildProgram(arch, DRIVER_ENTRY_FILE))
    for (const kernel of program ? kernels : []) {
      const provide = () => provideDebianKernel(kernel, arch, busybox)
      const provided = await attempt(`${nameSuite(kernel)} for ${arch}`, provide)
      if (program && provided) guests.push({ kernel: provided, emulator, program })
    }
  }
  return guests
}

const nameSuite = ({ version, suite }: LabKernel) => `Linux ${version} of Debian ${suite}`

/** @throws {UnavailableError} where it cannot be fetched, or the suite has moved on to another kernel */
function provideUmlKernel(kernel: LabKernel): ProvidedKernel {
  const { version, suite } = kernel
  const root = provideCached(`linux-${version}-${suite}-${hashPackageNames(UML_PACKAGES)}`, (directory) => {
    const versions = unpackSuitePackages(suite, UML_PACKAGES, directory)
    const [release = ''] = fs.readdirSync(`${directory}/usr/lib/uml/modules`)
    if (!release.startsWith(`${version}.`))
      throw new UnavailableError(`the suite has Linux ${release} by now, and ${version} is asked for`)
    fs.writeFileSync(`${directory}/versions.json`, JSON.stringify({ release, packageVersion: versions[UML_PACKAGE] }))
  })
  const { release, packageVersion } = JSON.parse(fs.readFileSync(`${root}/versions.json`, 'utf8'))
  return { ...kernel, name: release, arch: 'x64', root, packageName: UML_PACKAGE, packageVersion }
}

function provideServers(): string {
  return provideCached(`servers-${hashPackageNames(SERVER_PACKAGES)}`, (directory) => {
    unpackPackages(SERVER_PACKAGES, directory)
  })
}

// Run by itself it fills the cache for a later run with the same options.
if (import.meta.main) {
  const options = readOptions(process.argv.slice(2))
  if (options !== 'help') await provideLab(options, new Clock(console.log))
}
