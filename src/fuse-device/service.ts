import type { MethodDefinition } from '@grpc/grpc-js'
import { decode, encode, type Fields, type Message } from '../grpc/wire.ts'
import * as messages from './messages.ts'

function method<I extends Fields, O extends Fields>(
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

const PLUGIN = '/v1beta1.DevicePlugin'
const { Empty, ListAndWatchResponse } = messages

/** What kubelet asks of a plugin, on the plugin's socket. */
export const DevicePlugin = {
  GetDevicePluginOptions: method(`${PLUGIN}/GetDevicePluginOptions`, Empty, messages.DevicePluginOptions),
  ListAndWatch: method(`${PLUGIN}/ListAndWatch`, Empty, ListAndWatchResponse, true),
  GetPreferredAllocation: method(
    `${PLUGIN}/GetPreferredAllocation`,
    messages.PreferredAllocationRequest,
    messages.PreferredAllocationResponse,
  ),
  Allocate: method(`${PLUGIN}/Allocate`, messages.AllocateRequest, messages.AllocateResponse),
  PreStartContainer: method(
    `${PLUGIN}/PreStartContainer`,
    messages.PreStartContainerRequest,
    messages.PreStartContainerResponse,
  ),
}

/** What a plugin asks of kubelet, on kubelet.sock. */
export const Register = method('/v1beta1.Registration/Register', messages.RegisterRequest, Empty)
