import * as fs from 'node:fs'
import type { Architecture } from '../build/runtime.ts'
import { debianFile, packageOf } from '../fetch/debian.ts'
import { BUSYBOX, BUSYBOX_LICENCE } from '../fetch/pinned.ts'
import { imageFiles, imageOf } from '../image/modekeep.ts'
import { ociArchive } from '../image/oci.ts'
import type { ReleaseFile } from './archive.ts'
import { imageSbomOf } from './sbom.ts'

/** An executable for a processor. */
export interface Program {
  arch: Architecture
  program: Buffer
}

/**
 * The image of driver/kubernetes for these processors, with the executables of the archives. Its index is a file too: the
 * line that SHA256SUMS has for it names the image's digest. Its bill of materials is beside it.
 * @param time that the bill bears, in seconds since 1970
 * @throws {Unavailable} where Debian's busybox cannot be fetched
 */
export function imageFor(version: string, programs: readonly Program[], time: number): ReleaseFile[] {
  const licence = debianFile(BUSYBOX_LICENCE)
  const variants = programs.map(({ arch, program }) => {
    const busybox = debianFile(BUSYBOX[arch])
    const shell = { bytes: fs.readFileSync(busybox), origin: packageOf(BUSYBOX[arch].archive) }
    return { arch, program, shell, files: imageFiles(program, busybox, licence) }
  })
  const { archive, index } = ociArchive(imageOf(version), variants)
  const bom = imageSbomOf({ version, time, variants })
  const name = `modekeep-${version}-image`
  return [
    { path: `${name}.tar`, bytes: archive },
    { path: `${name}.json`, bytes: index },
    { path: `${name}.cdx.json`, bytes: Buffer.from(`${JSON.stringify(bom, null, 2)}\n`) },
  ]
}
