import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { VERSION } from '../../driver/version.ts'
import type { Entry } from '../archive/tar.ts'
import type { Architecture } from '../build/runtime.ts'
import { dockerArchive } from './archive.ts'
import { shellRoot } from './shell.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const COMMANDS = `${ROOT}/driver/kubernetes/image`

export interface Parts {
  /** The driver's executable. */
  binary: string
  /** A static busybox. */
  busybox: string
  /** Where the busybox says whose it is; '' for nowhere. */
  licence: string
  /** The image's tag. */
  version?: string
}

/** The name of the image in the manifests. */
export const IMAGE = 'modekeep'

/**
 * What the manifests run beside the driver: on-node and modekeep are shell scripts, which enter the node's mount namespace;
 * the installer tries the driver by chroot; what waits after an uninstall sleeps.
 */
const APPLETS = ['sh', 'nsenter', 'chroot', 'sleep']

/** The driver needs a C library: the node's own, which the containers that start it in here have at /host. */
const LIBRARIES: readonly Entry[] = [
  { path: 'host', directory: true, mode: 0o755 },
  { path: 'usr', directory: true, mode: 0o755 },
  { path: 'lib', link: 'host/lib' },
  { path: 'lib64', link: 'host/lib64' },
  { path: 'usr/lib', link: '../host/usr/lib' },
  { path: 'usr/lib64', link: '../host/usr/lib64' },
]

/**
 * The docker-archive of the image that driver/kubernetes runs: the driver, which installs itself, and a static shell for
 * APPLETS. The same parts are always the same bytes.
 */
export function modekeepImage({ binary, busybox, licence, version = VERSION }: Parts): Buffer {
  const commands = fs.readdirSync(COMMANDS).sort()
  const file = (path: string, source: string, mode: number): Entry => ({ path, bytes: fs.readFileSync(source), mode })
  const name = `${IMAGE}:${version}`
  const labels = {
    'org.opencontainers.image.title': IMAGE,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0 AND GPL-2.0-only',
  }
  return dockerArchive(
    [{ name, command: ['/modekeep', 'help'], labels }],
    [
      ...shellRoot(busybox, APPLETS),
      ...LIBRARIES,
      ...commands.map((command) => file(`bin/${command}`, `${COMMANDS}/${command}`, 0o755)),
      file('LICENSE', `${ROOT}/LICENSE`, 0o644),
      ...(licence === '' ? [] : [file('LICENSE.busybox', licence, 0o644)]),
      file('modekeep', binary, 0o755),
    ],
    process.arch as Architecture,
  )
}
