import { protobufPackage } from '../grpc/protobuf.ts'
import { FrameReader } from './frames.ts'

export const HEADER_LENGTH = 10
/** Limit of ttrpc, in bytes (containerd/ttrpc channel.go, messageLengthMax). */
export const MAX_MESSAGE_LENGTH = 4 << 20

/** Message types. NRI does not use those of streams. */
export const TYPE = { request: 1, response: 2 } as const

/** gRPC status codes that the plugin answers with. */
export const CODE = { ok: 0, unknown: 2, invalidArgument: 3, failedPrecondition: 9, unimplemented: 12 } as const

export interface TtrpcMessage {
  /** Stream ID, odd, chosen by the caller. The response has that of its request. */
  readonly stream: number
  readonly type: number
  readonly payload: Buffer
}

const { codec } = protobufPackage('ttrpc', {
  Status: { code: [1, 'int32'], message: [2, 'string'] },
  Request: { service: [1, 'string'], method: [2, 'string'], payload: [3, 'bytes'], timeoutNano: [4, 'int64'] },
  Response: { status: [1, 'Status'], payload: [2, 'bytes'] },
} as const)

export const request = codec('Request')
export const response = codec('Response')

/** Splits the bytes of one logical connection into messages. */
export class TtrpcReader {
  readonly #records = new FrameReader(HEADER_LENGTH, 0, MAX_MESSAGE_LENGTH);

  /** @throws {ProtocolError} */
  *push(piece: Buffer): Generator<TtrpcMessage> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { stream: header.readUInt32BE(4), type: header.readUInt8(8), payload }
    }
  }
}

/** @param payload an encoded request or response of at most MAX_MESSAGE_LENGTH bytes */
export function encodeMessage({ stream, type, payload }: TtrpcMessage): Buffer {
  const header = Buffer.alloc(HEADER_LENGTH)
  header.writeUInt32BE(payload.length, 0)
  header.writeUInt32BE(stream, 4)
  header.writeUInt8(type, 8)
  return Buffer.concat([header, payload])
}
