import { formatError } from '../errors/refusal.ts'
import { callOnce } from '../grpc/client.ts'
import { statSocketPath } from '../grpc/socket.ts'
import { Identity } from './messages.ts'
import { resolveSocketPaths } from './server.ts'

/** Shorter than the timeout of kubelet's probe, so that kubelet's event contains the reason. */
const PROBE_TIMEOUT_MS = 5000

/**
 * Calls Probe of the server of a kubelet directory, on the socket that kubelet uses.
 * @returns the server's fault; undefined if it answers
 */
export async function probeServer(directory: string, name: string): Promise<string | undefined> {
  const { csi, registration } = resolveSocketPaths(directory, name)
  const missing = [csi, registration].find((path) => !statSocketPath(path)?.isSocket())
  if (missing !== undefined) return `no CSI server of ${name} runs here: there is no socket ${missing}`
  try {
    const { ready } = await callOnce(csi, Identity.Probe, {}, PROBE_TIMEOUT_MS)
    return ready?.value === false ? `the CSI server at ${csi} is not ready` : undefined
  } catch (error) {
    return `the CSI server at ${csi} gives no answer within ${PROBE_TIMEOUT_MS / 1000} s (${formatError(error)})`
  }
}
