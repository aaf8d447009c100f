import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import type { MethodDefinition } from '@grpc/grpc-js'

/** A field: its number, and a scalar type of proto3 or a message of the same package. The keys of a map are strings. */
type Field = readonly [number: number, type: string, many?: 'repeated' | 'map']

/** Messages of a package by name. Their fields have TypeScript's names, such as `allocationSize`. */
export type Messages = Readonly<Record<string, Readonly<Record<string, Field>>>>

interface Scalars {
  string: string
  bool: boolean
  int32: number
  int64: bigint
  uint32: number
  bytes: Uint8Array
}

type Value<M extends Messages, T> = T extends keyof Scalars ? Scalars[T] : T extends keyof M ? Message<M, T> : never

/** A message may be undefined; a scalar never is, because proto3 has defaults. */
type Single<M extends Messages, T> = T extends keyof Scalars ? Scalars[T] : Value<M, T> | undefined

/** Value of a message. Every field of it is present. */
export type Message<M extends Messages, N extends keyof M> = {
  [F in keyof M[N]]: M[N][F] extends readonly [number, infer T, infer Many]
    ? Many extends 'map'
      ? Record<string, Value<M, T>>
      : Value<M, T>[]
    : Single<M, M[N][F][1]>
}

/** Creates the codecs of a package's messages, and the definitions of its methods for gRPC. */
export function protobufPackage<M extends Messages>(name: string, messages: M) {
  const file = create(FileDescriptorProtoSchema, {
    name,
    package: name,
    syntax: 'proto3',
    messageType: Object.entries(messages).map(([message, fields]) => ({
      name: message,
      field: Object.entries(fields).map(([field, spec]) => createFieldDescriptor(`.${name}`, message, field, spec)),
      nestedType: Object.entries(fields).flatMap(([field, spec]) => createMapEntry(`.${name}`, field, spec)),
    })),
  })
  const registry = createFileRegistry(file, () => undefined)

  function codec<N extends keyof M & string>(message: N) {
    const schema = registry.getMessage(`${name}.${message}`)
    if (schema === undefined) throw new Error(`no message ${message} in ${name}`)
    return {
      encode: (value: Message<M, N>) => Buffer.from(toBinary(schema, create(schema, value))),
      /** Ignores fields that are not in the table. @throws Error if the bytes are no such message */
      decode: (bytes: Uint8Array) => fromBinary(schema, bytes) as unknown as Message<M, N>,
    }
  }

  /** @param path `Service/Method` */
  function method<I extends keyof M & string, O extends keyof M & string>(
    path: string,
    input: I,
    output: O,
    responseStream = false,
  ): MethodDefinition<Message<M, I>, Message<M, O>> {
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

function createFieldDescriptor(space: string, message: string, name: string, [number, type, many]: Field) {
  return {
    name,
    number,
    label: FieldDescriptorProto_Label[many === undefined ? 'OPTIONAL' : 'REPEATED'],
    ...(many === 'map'
      ? { type: FieldDescriptorProto_Type.MESSAGE, typeName: `${space}.${message}.${formatEntryName(name)}` }
      : createFieldType(space, type)),
  }
}

function createFieldType(space: string, type: string) {
  const scalar = FieldDescriptorProto_Type[type.toUpperCase() as 'STRING']
  if (scalar !== undefined) return { type: scalar }
  return { type: FieldDescriptorProto_Type.MESSAGE, typeName: `${space}.${type}` }
}

/** Creates the message type of a map's entries: on the wire a map is a list of them. */
function createMapEntry(space: string, field: string, [, type, many]: Field) {
  if (many !== 'map') return []
  const label = FieldDescriptorProto_Label.OPTIONAL
  const key = { name: 'key', number: 1, label, type: FieldDescriptorProto_Type.STRING }
  const value = { name: 'value', number: 2, label, ...createFieldType(space, type) }
  return [{ name: formatEntryName(field), field: [key, value], options: { mapEntry: true } }]
}

function formatEntryName(field: string): string {
  return `${field.charAt(0).toUpperCase()}${field.slice(1)}Entry`
}
