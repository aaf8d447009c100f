import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { createTarArchive, type TarEntry } from '../../src/cli/output/tar.ts'
import { type Architecture, DEBIAN_ARCHITECTURES } from '../build/runtime.ts'
import { type ContainerImage, createImageConfig } from './archive.ts'
import { encodeJson, formatBlobPath, OCI_LAYOUT_TIME_SECONDS, OciLayout } from './oci-layout.ts'

/** An image for one processor. */
export interface ImageVariant {
  arch: Architecture
  files: readonly TarEntry[]
}

export interface OciArchive {
  archive: Buffer
  /** The image's index of its processors: its SHA-256 is the image's digest, wherever it is pushed. */
  index: Buffer
}

const OCI_IMAGE_TYPE_PREFIX = 'application/vnd.oci.image'

/**
 * One image for several processors as an archive with an OCI layout, for containerd, skopeo and podman, and with the
 * manifest.json of docker's own. That one knows no processors, so it has a tag for each.
 */
export function createOciArchive(
  { name, command, labels }: ContainerImage,
  variants: readonly ImageVariant[],
): OciArchive {
  const layout = new OciLayout()
  const add = (mediaType: string, bytes: Buffer) => layout.add(`${OCI_IMAGE_TYPE_PREFIX}.${mediaType}`, bytes)
  const images = variants.map(({ arch, files }) => {
    const whole = createTarArchive(files, OCI_LAYOUT_TIME_SECONDS)
    const diff = createHash('sha256').update(whole).digest('hex')
    const layer = add('layer.v1.tar+gzip', gzipSync(whole, { level: 6 }))
    const config = add('config.v1+json', encodeJson(createImageConfig({ name, command, labels }, arch, diff)))
    const manifest = {
      schemaVersion: 2,
      mediaType: `${OCI_IMAGE_TYPE_PREFIX}.manifest.v1+json`,
      config,
      layers: [layer],
    }
    return { arch, config, layer, manifest: add('manifest.v1+json', encodeJson(manifest)) }
  })
  const index = encodeJson({
    schemaVersion: 2,
    mediaType: `${OCI_IMAGE_TYPE_PREFIX}.index.v1+json`,
    manifests: images.map(({ arch, manifest }) => ({
      ...manifest,
      platform: { architecture: DEBIAN_ARCHITECTURES[arch], os: 'linux' },
    })),
    annotations: labels,
  })
  const annotations = {
    // As containerd writes a name without a registry, and as kubelet asks it for one.
    'io.containerd.image.name': `docker.io/library/${name}`,
    'org.opencontainers.image.ref.name': name.replace(/^.*:/, ''),
  }
  const dockers = images.map(({ arch, config, layer }) => ({
    Config: formatBlobPath(config),
    RepoTags: [`${name}-${DEBIAN_ARCHITECTURES[arch]}`],
    Layers: [formatBlobPath(layer)],
  }))
  const top = { ...add('index.v1+json', index), annotations }
  const list = { path: 'manifest.json', bytes: encodeJson(dockers), mode: 0o644 }
  return { archive: layout.createArchive(top, [list]), index }
}
