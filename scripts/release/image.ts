import type { Architecture } from '../build/runtime.ts'
import { debianFile } from '../fetch/debian.ts'
import { BUSYBOX, BUSYBOX_LICENCE } from '../fetch/pinned.ts'
import { imageFiles, imageOf } from '../image/modekeep.ts'
import { ociArchive } from '../image/oci.ts'
import type { ReleaseFile } from './archive.ts'

/** An executable for a processor. */
export interface Program {
  arch: Architecture
  program: Buffer
}

/**
 * The image of driver/kubernetes for these processors, with the executables of the archives. Its index is a file too: the
 * line that SHA256SUMS has for it names the image's digest.
 * @throws {Unavailable} where Debian's busybox cannot be fetched
 */
export function imageFor(version: string, programs: readonly Program[]): ReleaseFile[] {
  const licence = debianFile(BUSYBOX_LICENCE)
  const variants = programs.map(({ arch, program }) => ({
    arch,
    files: imageFiles(program, debianFile(BUSYBOX[arch]), licence),
  }))
  const { archive, index } = ociArchive(imageOf(version), variants)
  const name = `modekeep-${version}-image`
  return [
    { path: `${name}.tar`, bytes: archive },
    { path: `${name}.json`, bytes: index },
  ]
}
