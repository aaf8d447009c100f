import { createHash } from 'node:crypto'
import { type Entry, tar } from '../archive/tar.ts'
import { type Architecture, PROCESSOR } from '../build/runtime.ts'

export interface Image {
  /** With its tag. */
  name: string
  command: readonly string[]
  /** What a container's own arguments are appended to. */
  entrypoint?: readonly string[]
  labels?: Readonly<Record<string, string>> | undefined
}

/** An image bears no time of its own. */
const EPOCH = 0

/**
 * A docker-archive, as docker, podman, containerd and skopeo read it, of images that differ in name and command only:
 * all have the one layer.
 */
export function dockerArchive(images: readonly Image[], files: readonly Entry[], arch: Architecture): Buffer {
  const layer = tar(files, EPOCH)
  const digest = sha256(layer)
  const configs = images.map((image) => json(imageConfig(image, arch, digest)))
  const named = configs.map((bytes) => ({ path: `${sha256(bytes)}.json`, bytes, mode: 0o644 }))
  const manifest = images.map(({ name }, index) => ({
    Config: named[index]?.path,
    RepoTags: [name],
    Layers: ['layer.tar'],
  }))
  const entries: Entry[] = [
    { path: 'manifest.json', bytes: json(manifest), mode: 0o644 },
    ...new Map(named.map((entry) => [entry.path, entry])).values(),
    { path: 'layer.tar', bytes: layer, mode: 0o644 },
  ]
  return tar(entries, EPOCH)
}

/** What a runtime makes a container of. @param layer the SHA-256 of the one layer as it is unpacked */
export function imageConfig({ command, entrypoint, labels }: Image, arch: Architecture, layer: string): object {
  return {
    architecture: PROCESSOR[arch],
    os: 'linux',
    created: new Date(EPOCH * 1000).toISOString(),
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

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const json = (value: unknown) => Buffer.from(JSON.stringify(value))
