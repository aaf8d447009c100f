import * as fs from 'node:fs'
import type { Architecture } from '../build/runtime.ts'
import { parseArchivePackage, provideDebianFile } from '../fetch/debian.ts'
import { BUSYBOX_FILES, BUSYBOX_LICENCE_FILE } from '../fetch/pinned.ts'
import { createImageEntries, describeModekeepImage } from '../image/modekeep.ts'
import { createOciArchive } from '../image/oci.ts'
import type { ReleaseFile } from './archive.ts'
import { createImageSbom } from './sbom.ts'

/** An executable for a processor. */
export interface ReleasedProgram {
  arch: Architecture
  program: Buffer
}

/**
 * The image of driver/kubernetes for these processors, with the executables of the archives. Its index is a file too: the
 * line that SHA256SUMS has for it names the image's digest. Its bill of materials is beside it.
 * @param time that the bill bears, in seconds since 1970
 * @throws {Unavailable} where Debian's busybox cannot be fetched
 */
export function createReleaseImage(version: string, programs: readonly ReleasedProgram[], time: number): ReleaseFile[] {
  const licence = provideDebianFile(BUSYBOX_LICENCE_FILE)
  const variants = programs.map(({ arch, program }) => {
    const busybox = provideDebianFile(BUSYBOX_FILES[arch])
    const shell = { bytes: fs.readFileSync(busybox), origin: parseArchivePackage(BUSYBOX_FILES[arch].archive) }
    return { arch, program, shell, files: createImageEntries(program, busybox, licence) }
  })
  const { archive, index } = createOciArchive(describeModekeepImage(version), variants)
  const bom = createImageSbom({ version, time, variants })
  const name = `modekeep-${version}-image`
  return [
    { path: `${name}.tar`, bytes: archive },
    { path: `${name}.json`, bytes: index },
    { path: `${name}.cdx.json`, bytes: Buffer.from(`${JSON.stringify(bom, null, 2)}\n`) },
  ]
}
