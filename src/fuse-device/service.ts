import { method } from '../grpc/method.ts'
import * as messages from './messages.ts'

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

/** All devices are alike and need no preparation: kubelet need not ask, though it is answered. */
export const OPTIONS = { pre_start_required: false, get_preferred_allocation_available: false }
