import { RecordReader } from './records.ts'
import { LONGEST_MESSAGE, HEADER_LENGTH as MESSAGE_HEADER } from './ttrpc.ts'

/**
 * The logical connections of NRI's one socket (containerd/nri pkg/net/multiplex): one for the service that the plugin
 * serves, one for the runtime's own.
 */
export const CONNECTION = { plugin: 1, runtime: 2 } as const

const HEADER_LENGTH = 8
/** A runtime that reads through a buffer of this size refuses what does not fit in it (mux.go, conn.Read). */
const LONGEST_SENT = 4096

/** Cuts what comes from the socket into what each connection is told. */
export class MuxReader {
  readonly #records = new RecordReader(HEADER_LENGTH, 4, MESSAGE_HEADER + LONGEST_MESSAGE);

  /** @throws {ProtocolError} */
  *push(piece: Buffer): Generator<{ connection: number; bytes: Buffer }> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { connection: header.readUInt32BE(0), bytes: payload }
    }
  }
}

/** What a connection says, as it goes to the socket. */
export function muxed(connection: number, bytes: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += LONGEST_SENT) {
    const payload = bytes.subarray(at, at + LONGEST_SENT)
    const header = Buffer.alloc(HEADER_LENGTH)
    header.writeUInt32BE(connection, 0)
    header.writeUInt32BE(payload.length, 4)
    pieces.push(header, payload)
  }
  return Buffer.concat(pieces)
}
