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
 * The docker-archive of the image that driver/kubernetes runs: the driver, its installer, and a static shell. The same
 * parts are always the same bytes.
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
    [{ name, command: ['/install.sh', '--help'], labels }],
    [
      ...shellRoot(busybox, commands),
      ...commands.map((command) => file(`bin/${command}`, `${COMMANDS}/${command}`, 0o755)),
      file('install.sh', `${ROOT}/install.sh`, 0o755),
      file('LICENSE', `${ROOT}/LICENSE`, 0o644),
      ...(licence === '' ? [] : [file('LICENSE.busybox', licence, 0o644)]),
      file('modekeep', binary, 0o755),
    ],
    process.arch as Architecture,
  )
}
