import { protobufPackage } from '../grpc/protobuf.ts'
import { RecordReader } from './records.ts'

export const HEADER_LENGTH = 10
/** ttrpc's own bound (containerd/ttrpc channel.go, messageLengthMax), in bytes. */
export const LONGEST_MESSAGE = 4 << 20

/** Types of messages; those of streams are not used by NRI. */
export const TYPE = { request: 1, response: 2 } as const

/** Of gRPC's codes, those that are answered with. */
export const CODE = { ok: 0, unknown: 2, invalidArgument: 3, failedPrecondition: 9, unimplemented: 12 } as const

export interface TtrpcMessage {
  /** Odd: a request's, from who calls. Its response has the same. */
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

/** Cuts what one connection is told into messages. */
export class TtrpcReader {
  readonly #records = new RecordReader(HEADER_LENGTH, 0, LONGEST_MESSAGE);

  /** @throws {ProtocolError} */
  *push(piece: Buffer): Generator<TtrpcMessage> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { stream: header.readUInt32BE(4), type: header.readUInt8(8), payload }
    }
  }
}

/** @param payload a request or a response, LONGEST_MESSAGE at most */
export function encodeMessage({ stream, type, payload }: TtrpcMessage): Buffer {
  const header = Buffer.alloc(HEADER_LENGTH)
  header.writeUInt32BE(payload.length, 0)
  header.writeUInt32BE(stream, 4)
  header.writeUInt8(type, 8)
  return Buffer.concat([header, payload])
}
