import * as fs from 'node:fs'
import { hashPackageNames, provideCached } from './cache.ts'
import { parseDebianMirrors, runAptGet } from './mirrors.ts'
import { unpackPackages } from './packages.ts'
import { UnavailableError } from './unavailable.ts'

/** A runtime that another suite of Debian has. */
export interface SuiteRuntime {
  /** Also the name of the suite at the mirrors. */
  suite: 'trixie' | 'sid'
  /** Of containerd, as far as it matters. */
  wanted: string
}

/** The first version that asks plugins. */
export const OLDEST_SUITE_RUNTIME: SuiteRuntime = { suite: 'trixie', wanted: '1.7' }

/** Oldest first. */
export const SUITE_RUNTIMES: readonly SuiteRuntime[] = [OLDEST_SUITE_RUNTIME, { suite: 'sid', wanted: '2.1' }]

/** What was unpacked of a suite. */
export interface UnpackedSuite extends SuiteRuntime {
  /** Has `usr`: the programs with the C library that they were linked against, which the machine's own may be too old for. */
  root: string
  containerd: string
  runc: string
}

const SUITE_PACKAGES = ['containerd', 'runc', 'containernetworking-plugins', 'libc6', 'libseccomp2']

/** Signs all of Debian's suites. */
const DEBIAN_KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/**
 * containerd, runc and the network plugins of a suite, from the machine's own mirrors, unpacked into the cache: nothing is
 * installed. apt verifies what it fetches.
 * @throws {UnavailableError} where they cannot be fetched, or the suite has moved on to another containerd
 */
export function provideDebianSuite({ suite, wanted }: SuiteRuntime): UnpackedSuite {
  const root = provideCached(`containerd-${wanted}-${suite}-${hashPackageNames(SUITE_PACKAGES)}`, (directory) => {
    const { containerd = '', runc = '' } = unpackSuitePackages(suite, SUITE_PACKAGES, directory)
    assertContainerdVersion(suite, wanted, containerd)
    fs.writeFileSync(
      `${directory}/versions.json`,
      JSON.stringify({ containerd: getUpstreamVersion(containerd), runc: getUpstreamVersion(runc) }),
    )
  })
  return { suite, wanted, root, ...JSON.parse(fs.readFileSync(`${root}/versions.json`, 'utf8')) }
}

/**
 * Unpacks packages of a suite of Debian below `directory`, from the machine's own mirrors. apt verifies what it fetches.
 * @param suite its name at the mirrors
 * @returns the version of each package
 * @throws {UnavailableError} where they cannot be fetched
 */
export function unpackSuitePackages(
  suite: string,
  packages: readonly string[],
  directory: string,
): Record<string, string> {
  return unpackPackages(packages, directory, createSuiteAptOptions(suite, `${directory}.sources`))
}

/** A choice among packages and all that they depend on. */
export interface DependencySelection {
  /** Debian's word for the processor that the packages are for; the machine's own if it is left out. */
  architecture?: string
  /** Chooses by the name of a package; all if it is left out. */
  isWanted?: (name: string) => boolean
}

/** Unpacks packages like `unpackSuitePackages`, with what they depend on. */
export function unpackSuiteDependencies(
  suite: string,
  packages: readonly string[],
  directory: string,
  { architecture, isWanted = () => true }: DependencySelection = {},
): Record<string, string> {
  const processor = architecture
    ? ['APT::Architecture', 'APT::Architectures'].map((key) => `${key}=${architecture}`)
    : []
  const options = [
    ...createSuiteAptOptions(suite, `${directory}.sources`),
    ...processor.flatMap((setting) => ['-o', setting]),
  ]
  return unpackPackages(packages, directory, options, (all) => {
    const simulation = [...all, '--simulate', '--no-install-recommends', 'install', ...packages]
    return parseSimulatedInstall(runAptGet(`Debian's ${packages.join(', ')}`, simulation)).filter(isWanted)
  })
}

/** The names of the packages that `apt-get --simulate install` would install. */
export function parseSimulatedInstall(printed: string): string[] {
  return [...printed.matchAll(/^Inst ([^\s:]+)/gm)].map(([, name = '']) => name)
}

/** @throws {UnavailableError} where a suite has moved on to another containerd than what is wanted of it */
export function assertContainerdVersion(suite: string, wanted: string, containerd: string): void {
  if (containerd.startsWith(`${wanted}.`)) return
  throw new UnavailableError(`Debian ${suite} has containerd ${containerd} by now, and ${wanted} is asked for`)
}

/** A version without what Debian adds. */
const getUpstreamVersion = (version: string) => version.replace(/[~+-].*$/, '')

/** Options for an apt that knows one suite and no installed package. */
function createSuiteAptOptions(suite: string, directory: string): string[] {
  if (!fs.existsSync(DEBIAN_KEYRING))
    throw new UnavailableError(`${DEBIAN_KEYRING} is missing: apt-get install debian-archive-keyring`)
  const mirrors = parseDebianMirrors(runAptGet(`Debian ${suite}`, ['update', '--print-uris']))
  if (mirrors.length === 0) throw new UnavailableError("apt's sources name no mirror of Debian")
  const source = [
    'Types: deb',
    `URIs: ${mirrors.join(' ')}`,
    `Suites: ${suite}`,
    'Components: main',
    `Signed-By: ${DEBIAN_KEYRING}`,
  ]
  fs.mkdirSync(directory)
  fs.writeFileSync(`${directory}/debian.sources`, `${source.join('\n')}\n`)
  const settings = [
    'Dir::Etc::sourcelist=/dev/null',
    `Dir::Etc::sourceparts=${directory}`,
    'Dir::State::status=/dev/null',
  ]
  return settings.flatMap((setting) => ['-o', setting])
}
