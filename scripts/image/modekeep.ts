import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { MODEKEEP_VERSION } from '../../driver/process.ts'
import type { TarEntry } from '../../src/cli/output/tar.ts'
import type { Architecture } from '../build/runtime.ts'
import { type ContainerImage, createDockerArchive } from './archive.ts'
import { createShellRoot } from './shell.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const IMAGE_COMMANDS_DIRECTORY = `${ROOT}/driver/kubernetes/image`

export interface ModekeepImageParts {
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
export const IMAGE_NAME = 'modekeep'

/**
 * Programs in addition to the driver: on-node and modekeep are shell scripts, which enter the node's mount namespace. After an
 * uninstall a container sleeps.
 */
const BUSYBOX_APPLETS = ['sh', 'nsenter', 'sleep']

/** The docker-archive of the image, for this processor. The same parts are always the same bytes. */
export function createModekeepImage({
  binary,
  busybox,
  licence,
  version = MODEKEEP_VERSION,
}: ModekeepImageParts): Buffer {
  const files = createImageEntries(fs.readFileSync(binary), busybox, licence)
  return createDockerArchive([describeModekeepImage(version)], files, process.arch as Architecture)
}

/** How the image is called, and what is run where nothing else is said. */
export function describeModekeepImage(version: string): ContainerImage {
  const labels = {
    'org.opencontainers.image.title': IMAGE_NAME,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': 'Apache-2.0 AND GPL-2.0-only',
  }
  return { name: `${IMAGE_NAME}:${version}`, command: ['/modekeep', 'help'], labels }
}

/**
 * What is in the image that driver/kubernetes runs: the driver, which installs itself, and a static shell for APPLETS.
 * @param busybox its path, and that of its licence ('' for none)
 */
export function createImageEntries(program: Buffer, busybox: string, licence: string): TarEntry[] {
  const commands = fs.readdirSync(IMAGE_COMMANDS_DIRECTORY).sort()
  const file = (path: string, source: string, mode: number): TarEntry => ({
    path,
    bytes: fs.readFileSync(source),
    mode,
  })
  return [
    ...createShellRoot(busybox, BUSYBOX_APPLETS),
    ...commands.map((command) => file(`bin/${command}`, `${IMAGE_COMMANDS_DIRECTORY}/${command}`, 0o755)),
    file('LICENSE', `${ROOT}/LICENSE`, 0o644),
    ...(licence === '' ? [] : [file('LICENSE.busybox', licence, 0o644)]),
    { path: 'modekeep', bytes: program, mode: 0o755 },
  ]
}
