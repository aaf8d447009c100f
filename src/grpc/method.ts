import type { MethodDefinition } from '@grpc/grpc-js'
import { decode, encode, type Fields, type Message } from './wire.ts'

/** A request that names what is not there, or asks for what cannot be: INVALID_ARGUMENT for the caller. */
export class InvalidArgument extends Error {}

/** A method by its full name, `/package.Service/Method`, with the tables of its messages. */
export function method<I extends Fields, O extends Fields>(
  path: string,
  input: I,
  output: O,
  responseStream = false,
): MethodDefinition<Message<I>, Message<O>> {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (value) => encode(input, value),
    requestDeserialize: (bytes) => decode(input, bytes),
    responseSerialize: (value) => encode(output, value),
    responseDeserialize: (bytes) => decode(output, bytes),
  }
}
