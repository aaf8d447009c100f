import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  encodeMuxFrames,
  encodeTtrpcMessage,
  MAX_TTRPC_MESSAGE_LENGTH,
  MuxFrameReader,
  NriProtocolError,
  TtrpcMessageReader,
  ttrpcRequestCodec,
} from '../../../src/frontends/nri/protocol.ts'
import { encode } from './proto.ts'

/** A call as ttrpc sends it, in one frame of connection 1. */
const REQUEST = encode('Request', { service: 'nri.pkg.api.v1alpha1.Plugin', method: 'Shutdown', timeoutNano: 2e9 })
const FRAME = Buffer.concat([
  Buffer.from([0, 0, 0, 1, 0, 0, 0, REQUEST.length + 10]),
  Buffer.from([0, 0, 0, REQUEST.length, 0, 0, 0, 1, 1, 0]),
  REQUEST,
])

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...pieces, bytes.subarray(at)]
}

describe('NRI frames and messages', () => {
  it('recorded bytes of a runtime are decoded', () => {
    const [frame] = [...new MuxFrameReader().push(FRAME)]
    expect(frame?.connection).toBe(1)
    const [message] = [...new TtrpcMessageReader().push(frame?.bytes ?? Buffer.alloc(0))]
    expect(message).toMatchObject({ stream: 1, type: 1 })
    expect(ttrpcRequestCodec.decode(message?.payload ?? Buffer.alloc(0))).toMatchObject({
      service: 'nri.pkg.api.v1alpha1.Plugin',
      method: 'Shutdown',
      timeoutNano: 2_000_000_000n,
    })
  })

  it('are complete if the socket splits them at any byte', () => {
    const messages = fc.array(
      fc.record({ stream: fc.nat(), type: fc.nat(255), payload: fc.uint8Array({ maxLength: 9000 }) }),
    )
    fc.assert(
      fc.property(messages, fc.array(fc.nat(5000)), (all, sizes) => {
        const bytes = Buffer.concat(
          all.map(({ stream, type, payload }) =>
            encodeMuxFrames(1, encodeTtrpcMessage({ stream, type, payload: Buffer.from(payload) })),
          ),
        )
        const mux = new MuxFrameReader()
        const ttrpc = new TtrpcMessageReader()
        const read = cut(bytes, sizes).flatMap((piece) =>
          [...mux.push(piece)].flatMap((frame) => [...ttrpc.push(frame.bytes)]),
        )
        expect(read.map(({ stream, type, payload }) => ({ stream, type, payload: [...payload] }))).toEqual(
          all.map(({ stream, type, payload }) => ({ stream, type, payload: [...payload] })),
        )
      }),
      { numRuns: 100 },
    )
  })

  it('are rejected by their header if they are too long', () => {
    const header = Buffer.alloc(10)
    header.writeUInt32BE(MAX_TTRPC_MESSAGE_LENGTH + 1)
    expect(() => [...new TtrpcMessageReader().push(header)]).toThrow(NriProtocolError)
    const frame = Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff])
    expect(() => [...new MuxFrameReader().push(frame)]).toThrow(NriProtocolError)
  })

  it('random bytes are decoded or rejected with an NriProtocolError', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), (pieces) => {
        const mux = new MuxFrameReader()
        try {
          for (const piece of pieces)
            for (const { bytes } of mux.push(Buffer.from(piece))) [...new TtrpcMessageReader().push(bytes)]
        } catch (error) {
          expect(error).toBeInstanceOf(NriProtocolError)
        }
      }),
    )
  })
})
