import type { Socket } from 'node:net'
import { Duplex, Transform } from 'node:stream'
import { replaceAuthoritySlashes } from './hpack.ts'

const PREFACE_SIZE = 24
const FRAME_HEADER_SIZE = 9
const HEADERS = 1
const END_HEADERS = 0x4
const PADDED = 0x8
const PRIORITY = 0x20

/**
 * Kubelet before 1.26 sends the socket's path as `:authority`, which HTTP/2 forbids and Node's server rejects. This stream
 * replaces each slash in such a header by a dash, which is valid. A gRPC server ignores the value.
 */
export function acceptPathAsAuthority(connection: Socket): Duplex {
  const readable = new AuthorityFilter()
  connection.on('error', (error) => readable.destroy(error))
  connection.on('close', () => readable.destroy())
  // The types of Duplex.from accept only web streams.
  return Duplex.from({ readable: connection.pipe(readable), writable: connection } as never)
}

/** Forwards a client's HTTP/2 bytes frame by frame, with valid `:authority` headers. */
class AuthorityFilter extends Transform {
  #rest = Buffer.alloc(0)
  #seen = 0

  override _transform(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (let size = this.#next(); size > 0 && this.#rest.length >= size; size = this.#next()) {
      const frame = Buffer.from(this.#rest.subarray(0, size))
      this.#rest = this.#rest.subarray(size)
      if (this.#seen > 0 && frame[3] === HEADERS) replaceSlashesInHeaders(frame)
      this.#seen += 1
      this.push(frame)
    }
    done()
  }

  /** @returns the size of the next frame; 0 until its header is complete */
  #next(): number {
    if (this.#seen === 0) return PREFACE_SIZE
    return this.#rest.length < FRAME_HEADER_SIZE ? 0 : FRAME_HEADER_SIZE + this.#rest.readUIntBE(0, 3)
  }
}

function replaceSlashesInHeaders(frame: Buffer): void {
  const flags = frame[4] ?? 0
  // Kubelet's headers never need several frames.
  if (!(flags & END_HEADERS)) return
  const padding = flags & PADDED ? (frame[FRAME_HEADER_SIZE] ?? 0) : 0
  const start = FRAME_HEADER_SIZE + (flags & PADDED ? 1 : 0) + (flags & PRIORITY ? 5 : 0)
  replaceAuthoritySlashes(frame.subarray(start, Math.max(start, frame.length - padding)))
}
