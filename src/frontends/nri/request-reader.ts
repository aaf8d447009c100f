import type { NodeConfig } from '../../config/defaults.ts'
import type { ContainerCloneRequest } from '../../container/clone-request.ts'
import type { FaultCode } from '../../errors/entries/index.ts'
import type { Fault } from '../../errors/fault.ts'
import { formatError, Refusal } from '../../errors/refusal.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { hasGroupAnnotation } from './annotations.ts'
import type { PodProcessGids } from './cri.ts'
import { decideContainerClones } from './decide-clones.ts'
import { isModekeepFlexVolume, type PodVolumes } from './pod-volumes.ts'
import type { Container, PodSandbox } from './protocol.ts'

/** Functions that read the input of a decision. */
export interface CloneDecisionSources {
  /** Kubelet's root directory, as kubelet writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly readConfig: () => Promise<{ config: Pick<NodeConfig, 'map'>; faults: readonly Fault[] }>
  readonly readPodVolumes: (kubeletDir: string, uid: string) => Promise<PodVolumes>
  /** Resolves to undefined if no runtime reports the groups. Never rejects. */
  readonly readProcessGroups: (sandbox: string) => Promise<PodProcessGids | undefined>
  readonly log: LogEvent
}

/** No node runs so many containers. */
const MAX_WARNED_CONTAINERS = 10_000

/** @returns a function that resolves to a container's clones (undefined: none), and rejects with refusals of `decideContainerClones` */
export function createCloneRequestReader({
  kubeletDir,
  readConfig,
  readPodVolumes,
  readProcessGroups,
  log,
}: CloneDecisionSources) {
  const warned = new Set<string>()
  /** Kubelet creates a container that ended again, with the same annotation, which is warned of once. */
  const isNew = (container: string) => {
    if (warned.has(container)) return false
    if (warned.size === MAX_WARNED_CONTAINERS) warned.clear()
    warned.add(container)
    return true
  }

  /** @param report is called with the name of the next input */
  return async (
    pod: PodSandbox,
    container: Container,
    report: (input: string) => void = () => {},
  ): Promise<ContainerCloneRequest | undefined> => {
    const isAnnotated = hasGroupAnnotation(pod.annotations)
    const groups = isAnnotated && container.user === undefined ? readProcessGroups(pod.id) : undefined
    report('the configuration of the node')
    const { config, faults } = await readConfig()
    // For modekeep's own volumes the worker refuses an invalid configuration.
    if (isAnnotated && faults.length > 0) throw new Refusal(faults)
    report("kubelet's directory of the pod")
    const volumes = await findPodVolumes(pod, container)
    if (volumes === undefined) return undefined
    report("the pod's groups, from the container runtime")
    const rules = { kubeletDir, map: config.map }
    const { request, warning } = decideContainerClones(pod, container, volumes, rules, await groups)
    if (warning !== undefined && isNew(`${pod.uid} ${container.name}`)) {
      const code: FaultCode = 'map-unmatched'
      log('warn', 'unmatched', { ...listContainerLogFields(pod, container), message: warning, code })
    }
    return request
  }

  /**
   * Reads the pod's volumes. Failures of a pod without annotation are only logged, unless a volume is certainly modekeep's
   * own, because other drivers' volumes do not concern modekeep.
   * @returns undefined after such a failure
   */
  async function findPodVolumes(pod: PodSandbox, container: Container): Promise<PodVolumes | undefined> {
    try {
      return await readPodVolumes(kubeletDir, pod.uid)
    } catch (error) {
      if (hasGroupAnnotation(pod.annotations) || container.mounts.some(isModekeepFlexVolume)) throw error
      log('warn', 'failed', { ...listContainerLogFields(pod, container), message: formatError(error) })
      return undefined
    }
  }
}

/** Lists the fields that identify a container in a log line. */
export function listContainerLogFields(pod: PodSandbox, container: Container): Record<string, unknown> {
  return { namespace: pod.namespace, pod: pod.name, uid: pod.uid, name: container.name, container: container.id }
}
