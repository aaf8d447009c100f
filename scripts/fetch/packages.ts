import * as fs from 'node:fs'
import { hashPackageNames, provideCached } from './cache.ts'
import { runCommand } from './command.ts'
import { runAptGet } from './mirrors.ts'

// Of the machine's own release: they run with its libraries.
const RUNTIME_PACKAGES = ['containerd', 'runc', 'busybox-static']
const CONTROL_PLANE_PACKAGES = ['etcd-server', 'containernetworking-plugins']
const EMBEDDER_PACKAGES = ['go-bindata']
const SHELL_PACKAGES = ['busybox-static']
const MUSL_PACKAGES = ['musl', 'busybox-static']
// What a machine without it lacks too: its libraries beside libc.
const SKOPEO_PACKAGES = ['skopeo', 'libgpgme11', 'libassuan0', 'libdevmapper1.02.1']
const COMPILER_PACKAGES = ['golang-1.19-go', 'golang-1.19-src']

export interface ContainerRuntime {
  /** What PATH needs for containerd and its shims. */
  path: string
  /** Statically linked. */
  busybox: string
}

/** containerd, runc and busybox of Debian 12, unpacked into the cache: nothing is installed. */
export function provideContainerRuntime(): ContainerRuntime {
  const root = provideUnpackedPackages('containerd', RUNTIME_PACKAGES)
  return { path: `${root}/usr/sbin:${root}/usr/bin`, busybox: `${root}/bin/busybox` }
}

/** etcd, and the directory of the plugins for the network of pods, in the same way. */
export function provideControlPlane(): { etcd: string; plugins: string } {
  const root = provideUnpackedPackages('control-plane', CONTROL_PLANE_PACKAGES)
  return { etcd: `${root}/usr/bin/etcd`, plugins: `${root}/usr/lib/cni` }
}

/** What its programs say of themselves. */
export function readRuntimeVersions({ path }: ContainerRuntime): { containerd: string; runc: string } {
  const env = { ...process.env, PATH: `${path}:${process.env.PATH}` }
  const versionOf = (program: string) => {
    const said = runCommand(program, ['--version'], { env })
    const [version] = /(?<= v?)\d+\.\d+[^\s~+]*/.exec(said) ?? []
    if (version === undefined) throw new Error(`${program} --version says no version: ${said}`)
    return version
  }
  return { containerd: versionOf('containerd'), runc: versionOf('runc') }
}

/** go-bindata, which makes Go source of files, in the same way. */
export function provideGoBindata(): string {
  return `${provideUnpackedPackages('go-bindata', EMBEDDER_PACKAGES)}/usr/bin/go-bindata`
}

/** Debian's static busybox and its licence, in the same way. */
export function provideBusybox(): { busybox: string; licence: string } {
  const root = provideUnpackedPackages('busybox', SHELL_PACKAGES)
  return { busybox: `${root}/bin/busybox`, licence: `${root}/usr/share/doc/busybox-static/copyright` }
}

/** A root directory with musl and a static busybox, in the same way. */
export function provideMuslRoot(): string {
  return provideUnpackedPackages('musl', MUSL_PACKAGES)
}

/** skopeo in the same way: its path, and where its libraries are. */
export function provideSkopeo(): { skopeo: string; libraries: string } {
  const root = provideUnpackedPackages('skopeo', SKOPEO_PACKAGES)
  const below = (top: string) => fs.readdirSync(`${root}/${top}`).map((name) => `${root}/${top}/${name}`)
  return { skopeo: `${root}/usr/bin/skopeo`, libraries: [...below('usr/lib'), ...below('lib')].join(':') }
}

function provideUnpackedPackages(name: string, packages: readonly string[]): string {
  return provideCached(`${name}-${hashPackageNames(packages)}`, (directory) => unpackPackages(packages, directory))
}

/** Go, below `directory`. */
export function unpackGoCompiler(directory: string): void {
  unpackPackages(COMPILER_PACKAGES, directory)
}

/**
 * Downloads packages with lists of its own, the machine's apt keeps those it has, and unpacks them.
 * @param more options of apt
 * @param select names what is downloaded, where it is not the packages alone; it gets the options of an apt that has its lists
 * @returns the version of each
 * @throws {Unavailable} where they cannot be had
 */
export function unpackPackages(
  packages: readonly string[],
  directory: string,
  more: readonly string[] = [],
  select: (options: readonly string[]) => readonly string[] = () => packages,
): Record<string, string> {
  const apt = `${directory}.apt`
  for (const part of ['lists/partial', 'cache/archives/partial']) fs.mkdirSync(`${apt}/${part}`, { recursive: true })
  const options = ['-o', `Dir::State::lists=${apt}/lists`, '-o', `Dir::Cache=${apt}/cache`, ...more]
  const what = `Debian's ${packages.join(', ')}`
  runAptGet(what, [...options, 'update'])
  runAptGet(what, [...options, 'download', ...select(options)], { cwd: apt })
  const versions: Record<string, string> = {}
  for (const name of fs.readdirSync(apt).filter((file) => file.endsWith('.deb'))) {
    runCommand('dpkg-deb', ['-x', `${apt}/${name}`, directory])
    const said = runCommand('dpkg-deb', ['-f', `${apt}/${name}`, 'Package', 'Version'])
    const [, of = '', version = ''] = /^Package: (.*)\nVersion: (.*)$/m.exec(said) ?? []
    versions[of] = version
  }
  return versions
}
