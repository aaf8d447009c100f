import { FrameReader } from './frames.ts'
import { MAX_MESSAGE_LENGTH, HEADER_LENGTH as MESSAGE_HEADER } from './ttrpc.ts'

/**
 * Logical connections on NRI's one socket (containerd/nri pkg/net/multiplex): one for the plugin's service, one for the
 * runtime's.
 */
export const CONNECTION = { plugin: 1, runtime: 2 } as const

const HEADER_LENGTH = 8
/** A runtime reads frames into a buffer of this size and rejects longer ones (mux.go, conn.Read). */
const MAX_FRAME_LENGTH = 4096

/** Splits the socket's bytes into frames of the logical connections. */
export class MuxReader {
  readonly #records = new FrameReader(HEADER_LENGTH, 4, MESSAGE_HEADER + MAX_MESSAGE_LENGTH);

  /** @throws {ProtocolError} */
  *push(piece: Buffer): Generator<{ connection: number; bytes: Buffer }> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { connection: header.readUInt32BE(0), bytes: payload }
    }
  }
}

/** Encodes bytes of a logical connection as frames for the socket. */
export function encodeFrames(connection: number, bytes: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let offset = 0; offset < bytes.length; offset += MAX_FRAME_LENGTH) {
    const payload = bytes.subarray(offset, offset + MAX_FRAME_LENGTH)
    const header = Buffer.alloc(HEADER_LENGTH)
    header.writeUInt32BE(connection, 0)
    header.writeUInt32BE(payload.length, 4)
    pieces.push(header, payload)
  }
  return Buffer.concat(pieces)
}
