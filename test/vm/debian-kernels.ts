import * as fs from 'node:fs'
import { type Architecture, DEBIAN_ARCHITECTURES } from '../../scripts/build/runtime.ts'
import { hashPackageNames, provideCached } from '../../scripts/fetch/cache.ts'
import { runCommand } from '../../scripts/fetch/command.ts'
import { unpackSuiteDependencies } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import type { LabKernel, ProvidedKernel } from './kernels.ts'

/** Debian's own kernel: `root` has `vmlinuz`, and `lib/modules` with the list of what each module depends on. */
export interface DebianKernel extends ProvidedKernel {
  /** The kernel's own version, as `uname -r` prints it in the guest. */
  release: string
  /** The guest's root: the C library and busybox of the same suite. */
  guestRoot: string
}

/** What emulates a processor. */
export interface EmulatorFiles {
  /** Has `usr` with QEMU, its firmware and its libraries. */
  programs: string
  /** Paths below `programs` of blank disks: ext4, xfs, btrfs, and one more ext4. */
  disks: readonly string[]
}

const GUEST_PACKAGES = ['libc6', 'busybox-static']
const EMULATOR_SUITE = 'trixie'
const EMULATOR_PACKAGES = ['qemu-system-x86', 'qemu-system-arm', 'e2fsprogs', 'xfsprogs', 'btrfs-progs']
const DISKS = [
  { name: 'ext4', sizeMib: 64, format: ['mkfs.ext4', '-q', '-F'] },
  { name: 'xfs', sizeMib: 300, format: ['mkfs.xfs', '-q', '-f'] },
  { name: 'btrfs', sizeMib: 110, format: ['mkfs.btrfs', '-q', '-f'] },
  { name: 'image', sizeMib: 16, format: ['mkfs.ext4', '-q', '-F'] },
] as const

/**
 * Debian's own kernel of a suite for a processor, and the root of its guest.
 * @param busybox a statically linked one that runs here
 * @throws {UnavailableError} where it cannot be fetched, or the suite has moved on to another kernel
 */
export function provideDebianKernel(kernel: LabKernel, arch: Architecture, busybox: string): DebianKernel {
  const { version, suite } = kernel
  const architecture = DEBIAN_ARCHITECTURES[arch]
  const packageName = `linux-image-${architecture}`
  const root = provideCached(`${packageName}-${version}-${suite}`, (directory) => {
    const isWanted = (name: string) => name.startsWith('linux-')
    const versions = unpackSuiteDependencies(suite, [packageName], directory, { architecture, isWanted })
    const packageVersion = versions[packageName] ?? ''
    if (!packageVersion.startsWith(`${version}.`))
      throw new UnavailableError(`the suite has Linux ${packageVersion} by now, and ${version} is asked for`)
    const release = arrangeKernel(directory)
    runCommand(busybox, ['depmod', '-b', directory, release])
    fs.writeFileSync(`${directory}/versions.json`, JSON.stringify({ release, packageVersion }))
  })
  const versions = JSON.parse(fs.readFileSync(`${root}/versions.json`, 'utf8'))
  return {
    ...kernel,
    ...versions,
    name: `${versions.packageVersion.replace(/-.*/, '')} ${arch}`,
    arch,
    root,
    packageName,
    guestRoot: provideGuestRoot(suite, arch),
  }
}

/** Moves the kernel to `vmlinuz` and its modules to `lib/modules`, and removes the rest. @returns the kernel's release */
function arrangeKernel(directory: string): string {
  const modules = findExisting(directory, ['usr/lib/modules', 'lib/modules'])
  const [release = ''] = fs.readdirSync(modules)
  // Linux 7.x of Debian has it among the modules.
  fs.renameSync(
    findExisting(directory, [`boot/vmlinuz-${release}`, `usr/lib/modules/${release}/vmlinuz`]),
    `${directory}/vmlinuz`,
  )
  fs.mkdirSync(`${directory}/lib`, { recursive: true })
  if (modules !== `${directory}/lib/modules`) fs.renameSync(modules, `${directory}/lib/modules`)
  for (const name of ['boot', 'etc', 'usr']) fs.rmSync(`${directory}/${name}`, { recursive: true, force: true })
  return release
}

function findExisting(directory: string, names: readonly string[]): string {
  const name = names.find((candidate) => fs.existsSync(`${directory}/${candidate}`))
  if (name === undefined) throw new UnavailableError(`its packages have none of ${names.join(', ')}`)
  return `${directory}/${name}`
}

function provideGuestRoot(suite: string, arch: Architecture): string {
  return provideCached(`guest-${suite}-${arch}-${hashPackageNames(GUEST_PACKAGES)}`, (directory) => {
    const isWanted = (name: string) => GUEST_PACKAGES.includes(name)
    const architecture = DEBIAN_ARCHITECTURES[arch]
    unpackSuiteDependencies(suite, GUEST_PACKAGES, directory, { architecture, isWanted })
    for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
      fs.mkdirSync(`${directory}/usr/${name}`, { recursive: true })
      // Debian 12 has files in both places.
      if (!fs.existsSync(`${directory}/${name}`)) fs.symlinkSync(`usr/${name}`, `${directory}/${name}`)
    }
  })
}

/**
 * QEMU for all processors, and blank disks.
 * @throws {UnavailableError} where it cannot be fetched
 */
export function provideEmulator(): EmulatorFiles {
  const pathOf = (disk: string) => `usr/share/modekeep-lab/${disk}.img`
  const programs = provideCached(`qemu-${EMULATOR_SUITE}-${hashPackageNames(EMULATOR_PACKAGES)}`, (directory) => {
    unpackSuiteDependencies(EMULATOR_SUITE, EMULATOR_PACKAGES, directory)
    fs.mkdirSync(`${directory}/usr/share/modekeep-lab`)
    for (const { name, sizeMib, format } of DISKS) {
      const disk = `${directory}/${pathOf(name)}`
      fs.writeFileSync(disk, '')
      fs.truncateSync(disk, sizeMib << 20)
      runUnpacked(directory, [...format, disk])
    }
  })
  return { programs, disks: DISKS.map(({ name }) => pathOf(name)) }
}

/** Runs a program of administrators of an unpacked Debian for x86-64, with the C library there. */
function runUnpacked(root: string, [program = '', ...args]: readonly string[]): void {
  const libraries = `${root}/usr/lib/x86_64-linux-gnu`
  runCommand(`${root}/usr/lib64/ld-linux-x86-64.so.2`, [
    '--library-path',
    libraries,
    `${root}/usr/sbin/${program}`,
    ...args,
  ])
}
