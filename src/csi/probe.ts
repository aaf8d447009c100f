import { callOnce } from '../grpc/client.ts'
import { statPath } from '../grpc/socket.ts'
import { messageOf } from '../refusal/refusal.ts'
import { Identity } from './messages.ts'
import { resolveSocketPaths } from './server.ts'

/** Less than a probe of kubelet's has, so that its event says why. */
const PROBE_TIMEOUT_MS = 5000

/**
 * Asks the server of a kubelet directory whether it is well, over the socket that kubelet calls it by.
 * @returns why it is not; undefined for a server that answers
 */
export async function probeServer(directory: string, name: string): Promise<string | undefined> {
  const { csi, registration } = resolveSocketPaths(directory, name)
  const missing = [csi, registration].find((path) => !statPath(path)?.isSocket())
  if (missing !== undefined) return `no CSI server of ${name} runs here: there is no socket ${missing}`
  try {
    const { ready } = await callOnce(csi, Identity.Probe, {}, PROBE_TIMEOUT_MS)
    return ready?.value === false ? `the CSI server at ${csi} is not ready` : undefined
  } catch (error) {
    return `the CSI server at ${csi} gives no answer within ${PROBE_TIMEOUT_MS / 1000} s (${messageOf(error)})`
  }
}
