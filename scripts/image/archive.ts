import { createHash } from 'node:crypto'
import { createTarArchive, type TarEntry } from '../../src/cli/output/tar.ts'
import { type Architecture, DEBIAN_ARCHITECTURES } from '../build/runtime.ts'

export interface ContainerImage {
  /** With its tag. */
  name: string
  command: readonly string[]
  /** What a container's own arguments are appended to. */
  entrypoint?: readonly string[]
  labels?: Readonly<Record<string, string>> | undefined
}

/** An image bears no time of its own. */
const IMAGE_TIME_SECONDS = 0

/**
 * A docker-archive, as docker, podman, containerd and skopeo read it, of images that differ in name and command only:
 * all have the one layer.
 */
export function createDockerArchive(
  images: readonly ContainerImage[],
  files: readonly TarEntry[],
  arch: Architecture,
): Buffer {
  const layer = createTarArchive(files, IMAGE_TIME_SECONDS)
  const digest = computeSha256(layer)
  const configs = images.map((image) => encodeJson(createImageConfig(image, arch, digest)))
  const named = configs.map((bytes) => ({ path: `${computeSha256(bytes)}.json`, bytes, mode: 0o644 }))
  const manifest = images.map(({ name }, index) => ({
    Config: named[index]?.path,
    RepoTags: [name],
    Layers: ['layer.tar'],
  }))
  const entries: TarEntry[] = [
    { path: 'manifest.json', bytes: encodeJson(manifest), mode: 0o644 },
    ...new Map(named.map((entry) => [entry.path, entry])).values(),
    { path: 'layer.tar', bytes: layer, mode: 0o644 },
  ]
  return createTarArchive(entries, IMAGE_TIME_SECONDS)
}

/** What a runtime makes a container of. @param layer the SHA-256 of the one layer as it is unpacked */
export function createImageConfig(
  { command, entrypoint, labels }: ContainerImage,
  arch: Architecture,
  layer: string,
): object {
  return {
    architecture: DEBIAN_ARCHITECTURES[arch],
    os: 'linux',
    created: new Date(IMAGE_TIME_SECONDS * 1000).toISOString(),
    config: {
      ...(entrypoint === undefined ? {} : { Entrypoint: entrypoint }),
      Cmd: command,
      Env: ['PATH=/bin'],
      WorkingDir: '/',
      ...(labels === undefined ? {} : { Labels: labels }),
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
  }
}

const computeSha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const encodeJson = (value: unknown) => Buffer.from(JSON.stringify(value))
