import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { cached } from './cache.ts'
import { aptGet, debianMirrors } from './mirrors.ts'
import { unpack } from './packages.ts'
import { Unavailable } from './unavailable.ts'

/** A runtime that another suite of Debian has. */
export interface SuiteRuntime {
  /** Also the name of the suite at the mirrors. */
  suite: 'trixie' | 'sid'
  /** Of containerd, as far as it matters. */
  wanted: string
}

/** The first version that asks plugins. */
export const OLDEST_RUNTIME: SuiteRuntime = { suite: 'trixie', wanted: '1.7' }

/** Oldest first. */
export const SUITE_RUNTIMES: readonly SuiteRuntime[] = [OLDEST_RUNTIME, { suite: 'sid', wanted: '2.1' }]

/** What was unpacked of a suite. */
export interface SuiteRoot extends SuiteRuntime {
  /** Has `usr`: the programs with the C library that they were linked against, which the machine's own may be too old for. */
  root: string
  containerd: string
  runc: string
}

const PACKAGES = ['containerd', 'runc', 'containernetworking-plugins', 'libc6', 'libseccomp2']

/** Signs all of Debian's suites. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/**
 * containerd, runc and the network plugins of a suite, from the machine's own mirrors, unpacked into the cache: nothing is
 * installed. apt verifies what it fetches.
 * @throws {Unavailable} where they cannot be fetched, or the suite has moved on to another containerd
 */
export function provideSuite({ suite, wanted }: SuiteRuntime): SuiteRoot {
  const key = createHash('sha256').update(PACKAGES.join()).digest('hex').slice(0, 8)
  const root = cached(`containerd-${wanted}-${suite}-${key}`, (directory) => {
    const versions = unpack(PACKAGES, directory, sourcesOf(suite, `${directory}.sources`))
    const { containerd = '', runc = '' } = versions
    mustBe(suite, wanted, containerd)
    fs.writeFileSync(
      `${directory}/versions.json`,
      JSON.stringify({ containerd: upstream(containerd), runc: upstream(runc) }),
    )
  })
  return { suite, wanted, root, ...JSON.parse(fs.readFileSync(`${root}/versions.json`, 'utf8')) }
}

/** @throws {Unavailable} where a suite has moved on to another containerd than what is wanted of it */
export function mustBe(suite: string, wanted: string, containerd: string): void {
  if (containerd.startsWith(`${wanted}.`)) return
  throw new Unavailable(`Debian ${suite} has containerd ${containerd} by now, and ${wanted} is asked for`)
}

/** A version without what Debian adds. */
const upstream = (version: string) => version.replace(/[~+-].*$/, '')

/** Options for an apt that knows one suite and no installed package. */
function sourcesOf(suite: string, directory: string): string[] {
  if (!fs.existsSync(KEYRING)) throw new Unavailable(`${KEYRING} is missing: apt-get install debian-archive-keyring`)
  const mirrors = debianMirrors(aptGet(`Debian ${suite}`, ['update', '--print-uris']))
  if (mirrors.length === 0) throw new Unavailable("apt's sources name no mirror of Debian")
  const source = [
    'Types: deb',
    `URIs: ${mirrors.join(' ')}`,
    `Suites: ${suite}`,
    'Components: main',
    `Signed-By: ${KEYRING}`,
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
