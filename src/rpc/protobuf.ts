import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import type { MethodDefinition } from '@grpc/grpc-js'

/** A field: its number, and a scalar type of proto3 or a message of the same package. The keys of a map are strings. */
type ProtobufField = readonly [number: number, type: string, many?: 'repeated' | 'map']

/** Messages of a package by name. Their fields have TypeScript's names, such as `allocationSize`. */
export type ProtobufMessages = Readonly<Record<string, Readonly<Record<string, ProtobufField>>>>

interface ProtobufScalars {
  string: string
  bool: boolean
  int32: number
  int64: bigint
  uint32: number
  bytes: Uint8Array
}

type ProtobufValue<M extends ProtobufMessages, T> = T extends keyof ProtobufScalars
  ? ProtobufScalars[T]
  : T extends keyof M
    ? ProtobufMessage<M, T>
    : never

/** A message may be undefined; a scalar never is, because proto3 has defaults. */
type SingularFieldValue<M extends ProtobufMessages, T> = T extends keyof ProtobufScalars
  ? ProtobufScalars[T]
  : ProtobufValue<M, T> | undefined

/** Value of a message. Every field of it is present. */
export type ProtobufMessage<M extends ProtobufMessages, N extends keyof M> = {
  [F in keyof M[N]]: M[N][F] extends readonly [number, infer T, infer Many]
    ? Many extends 'map'
      ? Record<string, ProtobufValue<M, T>>
      : ProtobufValue<M, T>[]
    : SingularFieldValue<M, M[N][F][1]>
}

/** Creates the codecs of a package's messages, and the definitions of its methods for gRPC. */
export function createProtobufPackage<M extends ProtobufMessages>(name: string, messages: M) {
  const file = create(FileDescriptorProtoSchema, {
    name,
    package: name,
    syntax: 'proto3',
    messageType: Object.entries(messages).map(([message, fields]) => ({
      name: message,
      field: Object.entries(fields).map(([field, spec]) => createFieldDescriptor(`.${name}`, message, field, spec)),
      nestedType: Object.entries(fields).flatMap(([field, spec]) => createMapEntryMessage(`.${name}`, field, spec)),
    })),
  })
  const registry = createFileRegistry(file, () => undefined)

  function codec<N extends keyof M & string>(message: N) {
    const schema = registry.getMessage(`${name}.${message}`)
    if (schema === undefined) throw new Error(`the protobuf package ${name} has no message type ${message}`)
    return {
      encode: (value: ProtobufMessage<M, N>) => Buffer.from(toBinary(schema, create(schema, value))),
      /** Ignores fields that are not in the table. @throws Error if the bytes are no such message */
      decode: (bytes: Uint8Array) => fromBinary(schema, bytes) as unknown as ProtobufMessage<M, N>,
    }
  }

  /** @param path `Service/Method` */
  function method<I extends keyof M & string, O extends keyof M & string>(
    path: string,
    input: I,
    output: O,
    responseStream = false,
  ): MethodDefinition<ProtobufMessage<M, I>, ProtobufMessage<M, O>> {
    const [request, response] = [codec(input), codec(output)]
    return {
      path: `/${name}.${path}`,
      requestStream: false,
      responseStream,
      requestSerialize: request.encode,
      requestDeserialize: request.decode,
      responseSerialize: response.encode,
      responseDeserialize: response.decode,
    }
  }

  return { codec, method }
}

function createFieldDescriptor(space: string, message: string, name: string, [number, type, many]: ProtobufField) {
  return {
    name,
    number,
    label: FieldDescriptorProto_Label[many === undefined ? 'OPTIONAL' : 'REPEATED'],
    ...(many === 'map'
      ? { type: FieldDescriptorProto_Type.MESSAGE, typeName: `${space}.${message}.${formatMapEntryName(name)}` }
      : createFieldTypeDescriptor(space, type)),
  }
}

function createFieldTypeDescriptor(space: string, type: string) {
  const scalar = FieldDescriptorProto_Type[type.toUpperCase() as 'STRING']
  if (scalar !== undefined) return { type: scalar }
  return { type: FieldDescriptorProto_Type.MESSAGE, typeName: `${space}.${type}` }
}

/** Creates the message type of a map's entries: on the wire a map is a list of them. */
function createMapEntryMessage(space: string, field: string, [, type, many]: ProtobufField) {
  if (many !== 'map') return []
  const label = FieldDescriptorProto_Label.OPTIONAL
  const key = { name: 'key', number: 1, label, type: FieldDescriptorProto_Type.STRING }
  const value = { name: 'value', number: 2, label, ...createFieldTypeDescriptor(space, type) }
  return [{ name: formatMapEntryName(field), field: [key, value], options: { mapEntry: true } }]
}

function formatMapEntryName(field: string): string {
  return `${field.charAt(0).toUpperCase()}${field.slice(1)}Entry`
}
