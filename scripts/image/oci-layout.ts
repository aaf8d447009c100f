import { createHash } from 'node:crypto'
import { createTarArchive, type TarEntry } from '../../src/cli/output/tar.ts'

export interface OciDescriptor {
  mediaType: string
  digest: string
  size: number
}

/** An OCI image layout bears no time of its own. */
export const OCI_LAYOUT_TIME_SECONDS = 0

export const encodeJson = (value: unknown) => Buffer.from(JSON.stringify(value))

export const formatBlobPath = ({ digest }: Pick<OciDescriptor, 'digest'>) => `blobs/${digest.replace(':', '/')}`

/** The blobs of an OCI image layout. */
export class OciLayout {
  readonly #blobs = new Map<string, Buffer>()

  add(mediaType: string, bytes: Buffer): OciDescriptor {
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    this.#blobs.set(formatBlobPath({ digest }), bytes)
    return { mediaType, digest, size: bytes.length }
  }

  /**
   * Returns the layout as a tar archive, whose bytes depend on its content alone.
   * @param top the entry of index.json
   * @param more further files at the top
   */
  createArchive(top: OciDescriptor & { annotations: Record<string, string> }, more: readonly TarEntry[] = []): Buffer {
    const entries: TarEntry[] = [
      { path: 'oci-layout', bytes: encodeJson({ imageLayoutVersion: '1.0.0' }), mode: 0o644 },
      { path: 'index.json', bytes: encodeJson({ schemaVersion: 2, manifests: [top] }), mode: 0o644 },
      ...more,
      ...['blobs', 'blobs/sha256'].map((path) => ({ path, directory: true as const, mode: 0o755 })),
      ...[...this.#blobs].map(([path, bytes]) => ({ path, bytes, mode: 0o644 })),
    ]
    return createTarArchive(entries, OCI_LAYOUT_TIME_SECONDS)
  }
}
