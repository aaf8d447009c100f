import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { type Architecture, DEBIAN_ARCHITECTURES } from '../../scripts/build/runtime.ts'
import { unpack } from './made.ts'

/** Unpacks an archive with an image's OCI layout into a new directory. */
export function layoutOf(archive: string, directory: string) {
  fs.mkdirSync(directory)
  execFileSync('tar', ['-xf', archive, '-C', directory])
  const parsed = (path: string) => JSON.parse(fs.readFileSync(join(directory, path), 'utf8'))
  const pathOf = (digest: string) => `blobs/${digest.replace(':', '/')}`
  const [image] = parsed('index.json').manifests
  const { manifests } = parsed(pathOf(image.digest))
  return {
    /** With its digest. */
    image,
    processors: manifests.map((one: { platform: { architecture: string } }) => one.platform.architecture),
    /** The root directory of the image for a processor. */
    root(arch: Architecture): string {
      const of = manifests.find(
        (one: { platform: { architecture: string } }) => one.platform.architecture === DEBIAN_ARCHITECTURES[arch],
      )
      const [layer] = parsed(pathOf(of.digest)).layers
      unpack(join(directory, pathOf(layer.digest)), join(directory, arch))
      return join(directory, arch)
    },
  }
}
