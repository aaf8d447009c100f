import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'
import type { MethodDefinition } from '@grpc/grpc-js'

/** A field by its number, with a type of proto3 or a message of the same package. */
type Field = readonly [number: number, type: string, repeated?: 'repeated']

/** Messages of a package, by name; their fields by the names that TypeScript gives them, `allocationSize`. */
export type Messages = Readonly<Record<string, Readonly<Record<string, Field>>>>

interface Scalars {
  string: string
  bool: boolean
  int32: number
}

type Value<M extends Messages, T> = T extends keyof Scalars ? Scalars[T] : T extends keyof M ? Message<M, T> : never

/** The value of a message of scalars and lists: every field is there, as proto3 has it. */
export type Message<M extends Messages, N extends keyof M> = {
  [F in keyof M[N]]: M[N][F] extends readonly [number, infer T, 'repeated'] ? Value<M, T>[] : Value<M, M[N][F][1]>
}

/** The codecs of a package's messages, and of its methods as gRPC takes them. */
export function protobufPackage<M extends Messages>(name: string, messages: M) {
  const file = create(FileDescriptorProtoSchema, {
    name,
    package: name,
    syntax: 'proto3',
    messageType: Object.entries(messages).map(([message, fields]) => ({
      name: message,
      field: Object.entries(fields).map(([field, spec]) => descriptorOf(name, field, spec)),
    })),
  })
  const registry = createFileRegistry(file, () => undefined)

  function codec<N extends keyof M & string>(message: N) {
    const schema = registry.getMessage(`${name}.${message}`)
    if (schema === undefined) throw new Error(`no message ${message} in ${name}`)
    return {
      encode: (value: Message<M, N>) => Buffer.from(toBinary(schema, create(schema, value))),
      /** Fields that are not in the table are passed over. @throws Error for bytes that are not a message */
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

function descriptorOf(space: string, name: string, [number, type, repeated]: Field) {
  const scalar = FieldDescriptorProto_Type[type.toUpperCase() as 'STRING']
  return {
    name,
    number,
    label: FieldDescriptorProto_Label[repeated ? 'REPEATED' : 'OPTIONAL'],
    type: scalar ?? FieldDescriptorProto_Type.MESSAGE,
    typeName: scalar === undefined ? `.${space}.${type}` : '',
  }
}
