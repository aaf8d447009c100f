import * as grpc from '@grpc/grpc-js'
import { RESOURCE } from './devices.ts'
import { OPTIONS, Register } from './service.ts'

/**
 * Asks kubelet to call back. A connection for each: kubelet's socket may be another next time.
 * @param endpoint the plugin's socket, a name in the directory of kubelet's. @throws gRPC's error, also when aborted
 */
export async function register(kubelet: string, endpoint: string, timeoutMs: number, stop: AbortSignal): Promise<void> {
  stop.throwIfAborted()
  const client = new grpc.Client(`unix:${kubelet}`, grpc.credentials.createInsecure(), { 'grpc.enable_channelz': 0 })
  const request = { version: 'v1beta1', endpoint, resource_name: RESOURCE, options: OPTIONS }
  try {
    await new Promise<void>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        Register.path,
        Register.requestSerialize,
        Register.responseDeserialize,
        request,
        { deadline: Date.now() + timeoutMs },
        (error) => (error ? reject(error) : resolve()),
      )
      stop.addEventListener('abort', () => call.cancel(), { once: true })
    })
  } finally {
    client.close()
  }
}
