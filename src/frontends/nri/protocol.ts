import { createProtobufPackage, type ProtobufMessage } from '../../rpc/protobuf.ts'

/** Newest NRI release that these messages were compared with. Runtimes only log it, since NRI 0.10. */
export const NRI_VERSION = 'v0.12.0'

/**
 * Messages of NRI v1alpha1, with the field numbers of its api.proto. Fields that the plugin neither sends nor reads are
 * left out. An enumeration is declared as int32.
 */
const NRI_MESSAGES = {
  Empty: {},
  RegisterPluginRequest: { pluginName: [1, 'string'], pluginIdx: [2, 'string'], nriVersion: [3, 'string'] },
  ConfigureRequest: {
    config: [1, 'string'],
    runtimeName: [2, 'string'],
    runtimeVersion: [3, 'string'],
    registrationTimeout: [4, 'int64'],
    requestTimeout: [5, 'int64'],
    nriVersion: [6, 'string'],
  },
  ConfigureResponse: { events: [2, 'int32'] },
  Mount: { destination: [1, 'string'], type: [2, 'string'], source: [3, 'string'], options: [4, 'string', 'repeated'] },
  LinuxNamespace: { type: [1, 'string'], path: [2, 'string'] },
  LinuxContainer: { namespaces: [1, 'LinuxNamespace', 'repeated'] },
  /** Sent since NRI 0.11. */
  User: { uid: [1, 'uint32'], gid: [2, 'uint32'], additionalGids: [3, 'uint32', 'repeated'] },
  PodSandbox: {
    id: [1, 'string'],
    name: [2, 'string'],
    uid: [3, 'string'],
    namespace: [4, 'string'],
    annotations: [6, 'string', 'map'],
  },
  Container: {
    id: [1, 'string'],
    podSandboxId: [2, 'string'],
    name: [3, 'string'],
    state: [4, 'int32'],
    mounts: [9, 'Mount', 'repeated'],
    linux: [11, 'LinuxContainer'],
    user: [21, 'User'],
  },
  SynchronizeRequest: {
    pods: [1, 'PodSandbox', 'repeated'],
    containers: [2, 'Container', 'repeated'],
    more: [3, 'bool'],
  },
  SynchronizeResponse: { more: [2, 'bool'] },
  ContainerAdjustment: { mounts: [3, 'Mount', 'repeated'] },
  CreateContainerResponse: { adjust: [1, 'ContainerAdjustment'] },
  /** Has the common fields of all requests about a container or a sandbox: CreateContainer, PostStartContainer, StopPodSandbox, … */
  ContainerRequest: { pod: [1, 'PodSandbox'], container: [2, 'Container'] },
  StateChangeEvent: { event: [1, 'int32'], pod: [2, 'PodSandbox'], container: [3, 'Container'] },
} as const

type NriMessage<N extends keyof typeof NRI_MESSAGES> = ProtobufMessage<typeof NRI_MESSAGES, N>

export type PodSandbox = NriMessage<'PodSandbox'>
export type Container = NriMessage<'Container'>
export type ContainerMount = NriMessage<'Mount'>

export const { codec } = createProtobufPackage('nri.pkg.api.v1alpha1', NRI_MESSAGES)

export const TTRPC_SERVICE_NAMES = {
  plugin: 'nri.pkg.api.v1alpha1.Plugin',
  runtime: 'nri.pkg.api.v1alpha1.Runtime',
} as const

/** Numbers of NRI's enumeration Event. */
export const NRI_EVENT_NUMBERS = {
  runPodSandbox: 1,
  stopPodSandbox: 2,
  createContainer: 4,
  postStartContainer: 7,
  stopContainer: 10,
  removeContainer: 11,
} as const

/** Value of ConfigureResponse.events: bit n - 1 for event n. */
export const NRI_EVENT_MASK = Object.values(NRI_EVENT_NUMBERS).reduce((mask, event) => mask | (1 << (event - 1)), 0)

/** Numbers of NRI's enumeration ContainerState. */
export const CONTAINER_STATE_NUMBERS = { created: 1, stopped: 4 } as const

/** The peer broke the protocol, and the connection must be closed. */
export class NriProtocolError extends Error {}

/** A header of fixed length, which contains the length of the payload. */
interface LengthPrefixedFrame {
  readonly header: Buffer
  readonly payload: Buffer
}

/** Splits a byte stream into frames. Buffers at most one frame and one piece of the stream. */
class LengthPrefixedFrameReader {
  readonly #headerLength: number
  readonly #lengthOffset: number
  readonly #maxPayloadLength: number
  #pieces: Buffer[] = []
  #bufferedLength = 0
  /** Length of the next frame, or of its header until the header is complete. */
  #neededLength: number

  /**
   * @param lengthOffset offset of the payload's length in the header: 32 bits, big-endian
   * @param maxPayloadLength in bytes
   */
  constructor(headerLength: number, lengthOffset: number, maxPayloadLength: number) {
    this.#headerLength = headerLength
    this.#lengthOffset = lengthOffset
    this.#maxPayloadLength = maxPayloadLength
    this.#neededLength = headerLength
  }

  /** @throws {NriProtocolError} if a payload is too long */
  *push(piece: Buffer): Generator<LengthPrefixedFrame> {
    this.#pieces.push(piece)
    this.#bufferedLength += piece.length
    while (this.#bufferedLength >= this.#neededLength) {
      const all = this.#join()
      const length = all.readUInt32BE(this.#lengthOffset)
      if (length > this.#maxPayloadLength)
        throw new NriProtocolError(`a message has ${length} bytes, which is more than ${this.#maxPayloadLength}`)
      const end = this.#headerLength + length
      if (all.length < end) {
        this.#neededLength = end
        return
      }
      this.#neededLength = this.#headerLength
      this.#pieces = [all.subarray(end)]
      this.#bufferedLength = all.length - end
      yield { header: all.subarray(0, this.#headerLength), payload: all.subarray(this.#headerLength, end) }
    }
  }

  #join(): Buffer {
    const [only = Buffer.alloc(0), ...more] = this.#pieces
    const all = more.length === 0 ? only : Buffer.concat(this.#pieces)
    this.#pieces = [all]
    return all
  }
}

const TTRPC_HEADER_LENGTH = 10
/** Limit of ttrpc, in bytes (containerd/ttrpc channel.go, messageLengthMax). */
export const MAX_TTRPC_MESSAGE_LENGTH = 4 << 20

/** Message types. NRI does not use those of streams. */
export const TTRPC_MESSAGE_TYPE = { request: 1, response: 2 } as const

/** gRPC status codes that the plugin answers with. */
export const GRPC_STATUS_CODE = {
  ok: 0,
  unknown: 2,
  invalidArgument: 3,
  failedPrecondition: 9,
  unimplemented: 12,
} as const

export interface TtrpcMessage {
  /** Stream ID, odd, chosen by the caller. The response has that of its request. */
  readonly stream: number
  readonly type: number
  readonly payload: Buffer
}

const ttrpcProtobuf = createProtobufPackage('ttrpc', {
  Status: { code: [1, 'int32'], message: [2, 'string'] },
  Request: { service: [1, 'string'], method: [2, 'string'], payload: [3, 'bytes'], timeoutNano: [4, 'int64'] },
  Response: { status: [1, 'Status'], payload: [2, 'bytes'] },
} as const)

export const ttrpcRequestCodec = ttrpcProtobuf.codec('Request')
export const ttrpcResponseCodec = ttrpcProtobuf.codec('Response')

/** Splits the bytes of one logical connection into messages. */
export class TtrpcMessageReader {
  readonly #records = new LengthPrefixedFrameReader(TTRPC_HEADER_LENGTH, 0, MAX_TTRPC_MESSAGE_LENGTH);

  /** @throws {NriProtocolError} */
  *push(piece: Buffer): Generator<TtrpcMessage> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { stream: header.readUInt32BE(4), type: header.readUInt8(8), payload }
    }
  }
}

/** @param payload an encoded request or response of at most MAX_TTRPC_MESSAGE_LENGTH bytes */
export function encodeTtrpcMessage({ stream, type, payload }: TtrpcMessage): Buffer {
  const header = Buffer.alloc(TTRPC_HEADER_LENGTH)
  header.writeUInt32BE(payload.length, 0)
  header.writeUInt32BE(stream, 4)
  header.writeUInt8(type, 8)
  return Buffer.concat([header, payload])
}

/**
 * Logical connections on NRI's one socket (containerd/nri pkg/net/multiplex): one for the plugin's service, one for the
 * runtime's.
 */
export const NRI_CONNECTION_NUMBERS = { plugin: 1, runtime: 2 } as const

const MUX_FRAME_HEADER_LENGTH = 8
/** The runtime reads frames into a buffer of this size and rejects longer ones (mux.go, conn.Read). */
const MAX_MUX_FRAME_LENGTH = 4096

/** Splits the socket's bytes into frames of the logical connections. */
export class MuxFrameReader {
  readonly #records = new LengthPrefixedFrameReader(
    MUX_FRAME_HEADER_LENGTH,
    4,
    TTRPC_HEADER_LENGTH + MAX_TTRPC_MESSAGE_LENGTH,
  );

  /** @throws {NriProtocolError} */
  *push(piece: Buffer): Generator<{ connection: number; bytes: Buffer }> {
    for (const { header, payload } of this.#records.push(piece)) {
      yield { connection: header.readUInt32BE(0), bytes: payload }
    }
  }
}

/** Encodes bytes of a logical connection as frames for the socket. */
export function encodeMuxFrames(connection: number, bytes: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let offset = 0; offset < bytes.length; offset += MAX_MUX_FRAME_LENGTH) {
    const payload = bytes.subarray(offset, offset + MAX_MUX_FRAME_LENGTH)
    const header = Buffer.alloc(MUX_FRAME_HEADER_LENGTH)
    header.writeUInt32BE(connection, 0)
    header.writeUInt32BE(payload.length, 4)
    pieces.push(header, payload)
  }
  return Buffer.concat(pieces)
}
