import { renderFault } from '../src/errors/fault.ts'
import type { FlexVolumeReply } from '../src/flexvolume/reply.ts'
import { readConfig } from './config.ts'

/**
 * Replies with the capabilities even if the configuration is invalid: a driver that fails init is unknown to kubelet,
 * and the pod's author would read "no volume plugin matched" instead of the fault.
 */
export async function init(env: NodeJS.ProcessEnv): Promise<FlexVolumeReply> {
  const { config, faults } = await readConfig(env)
  return {
    status: 'Success',
    capabilities: { attach: false, fsGroup: false, requiresFSResize: false, ...config.capabilities },
    // Kubelet ignores the message; `install --config` reads it.
    ...(faults.length > 0 ? { message: faults.map((fault) => renderFault(fault)).join('; ') } : {}),
  }
}
