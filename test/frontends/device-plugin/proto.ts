import * as fs from 'node:fs'
import type { ServiceDefinition } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { provideDebianFile } from '../../../scripts/fetch/debian.ts'
import { DEVICE_PLUGIN_PROTO_FILE } from '../../../scripts/fetch/pinned.ts'
import { skipIfUnavailable } from '../../helpers/unavailable.ts'

let parsed: protobuf.Root | undefined

/** The published proto through a protobuf implementation that shares nothing with the plugin's. */
const published = skipIfUnavailable(() => {
  parsed ??= protobuf.parse(fs.readFileSync(provideDebianFile(DEVICE_PLUGIN_PROTO_FILE), 'utf8'), {
    keepCase: true,
  }).root
  return parsed
})

export function messageType(name: string): protobuf.Type {
  return published().lookupType(`v1beta1.${name}`)
}

/** The types of all messages of the proto. */
export function messageNames(): string[] {
  const { nestedArray } = published().lookup('v1beta1') as protobuf.Namespace
  return nestedArray.filter((one) => one instanceof protobuf.Type).map(({ name }) => name)
}

export function plain(name: string, bytes: Uint8Array): Record<string, unknown> {
  const type = messageType(name)
  return type.toObject(type.decode(bytes), { defaults: true, arrays: true, longs: Number })
}

export function bytesOf(name: string, value: object): Buffer {
  const type = messageType(name)
  const fault = type.verify(value)
  if (fault) throw new Error(`${name}: ${fault}`)
  return Buffer.from(type.encode(type.create(value)).finish())
}

/** A service of the proto, as gRPC takes it. */
export function serviceDefinition(name: string): ServiceDefinition {
  const entries = published()
    .lookupService(`v1beta1.${name}`)
    .methodsArray.map((method) => [
      method.name,
      {
        path: `/v1beta1.${name}/${method.name}`,
        requestStream: method.requestStream ?? false,
        responseStream: method.responseStream ?? false,
        requestSerialize: (value: object) => bytesOf(method.requestType, value),
        requestDeserialize: (bytes: Buffer) => plain(method.requestType, bytes),
        responseSerialize: (value: object) => bytesOf(method.responseType, value),
        responseDeserialize: (bytes: Buffer) => plain(method.responseType, bytes),
      },
    ])
  return Object.fromEntries(entries)
}
