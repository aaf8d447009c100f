import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { MODEKEEP_VERSION } from '../../driver/process.ts'
import type { Entry } from '../archive/tar.ts'
import type { Architecture } from '../build/runtime.ts'
import { dockerArchive, type Image } from './archive.ts'
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

/** The docker-archive of the image, for this processor. The same parts are always the same bytes. */
export function modekeepImage({ binary, busybox, licence, version = MODEKEEP_VERSION }: Parts): Buffer {
  const files = imageFiles(fs.readFileSync(binary), busybox, licence)
  return dockerArchive([imageOf(version)], files, process.arch as Architecture)
}

/** How the image is called, and what is run where nothing else is said. */
export function imageOf(version: string): Image {
  const labels = {
    'org.opencontainers.image.title': IMAGE,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0 AND GPL-2.0-only',
  }
  return { name: `${IMAGE}:${version}`, command: ['/modekeep', 'help'], labels }
}

/**
 * What is in the image that driver/kubernetes runs: the driver, which installs itself, and a static shell for APPLETS.
 * @param busybox its path, and that of its licence ('' for none)
 */
export function imageFiles(program: Buffer, busybox: string, licence: string): Entry[] {
  const commands = fs.readdirSync(COMMANDS).sort()
  const file = (path: string, source: string, mode: number): Entry => ({ path, bytes: fs.readFileSync(source), mode })
  return [
    ...shellRoot(busybox, APPLETS),
    ...LIBRARIES,
    ...commands.map((command) => file(`bin/${command}`, `${COMMANDS}/${command}`, 0o755)),
    file('LICENSE', `${ROOT}/LICENSE`, 0o644),
    ...(licence === '' ? [] : [file('LICENSE.busybox', licence, 0o644)]),
    { path: 'modekeep', bytes: program, mode: 0o755 },
  ]
}
