import type { ContainerOrder } from '../container-mount/order.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import { isAsking } from './asked.ts'
import { decide } from './decide.ts'
import type { Container, PodSandbox } from './messages.ts'
import type { ToldGroups } from './pod-groups.ts'
import { isOwnFlexVolume, type PodVolumes } from './volume.ts'

/** Who tells what a decision depends on. */
export interface Sources {
  /** As kubelet writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly readConfig: () => Promise<{ config: Pick<NodeConfig, 'map'>; faults: readonly string[] }>
  readonly lookAtPod: (kubeletDir: string, uid: string) => Promise<PodVolumes>
  /** The groups of its processes; undefined: nobody tells. Never rejects. */
  readonly groupsOfPod: (sandbox: string) => Promise<ToldGroups | undefined>
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/** More than a node runs. */
const MOST_REMEMBERED = 10_000

/** @returns what says which mounts of a container are to be clones (undefined: none), and rejects with decide's refusals */
export function ordersFrom({ kubeletDir, readConfig, lookAtPod, groupsOfPod, log }: Sources) {
  const warned = new Set<string>()
  /** A container that ends is created again, and its annotation is the same. */
  const isNew = (container: string) => {
    if (warned.has(container)) return false
    if (warned.size === MOST_REMEMBERED) warned.clear()
    warned.add(container)
    return true
  }

  /** @param report is called with what is read next */
  return async (
    pod: PodSandbox,
    container: Container,
    report: (what: string) => void = () => {},
  ): Promise<ContainerOrder | undefined> => {
    const isAskingPod = isAsking(pod.annotations)
    const asking = isAskingPod && container.user === undefined ? groupsOfPod(pod.id) : undefined
    report('the configuration of the node')
    const { config, faults } = await readConfig()
    // Where modekeep's own volumes are concerned the worker refuses.
    if (isAskingPod && faults.length > 0) throw new Refusal(faults)
    report("kubelet's directory of the pod")
    const volumes = await volumesOf(pod, container)
    if (volumes === undefined) return undefined
    report("the pod's groups, from the container runtime")
    const { order, warning } = decide(pod, container, volumes, { kubeletDir, map: config.map }, await asking)
    if (warning !== undefined && isNew(`${pod.uid} ${container.name}`)) {
      log('warn', 'unmatched', { ...factsOf(pod, container), message: warning })
    }
    return order
  }

  /**
   * Of a pod that asks for nothing another driver's volumes are nothing of modekeep's, and neither is what keeps it from
   * telling. @returns undefined where that is so
   */
  async function volumesOf(pod: PodSandbox, container: Container): Promise<PodVolumes | undefined> {
    try {
      return await lookAtPod(kubeletDir, pod.uid)
    } catch (error) {
      if (isAsking(pod.annotations) || container.mounts.some(isOwnFlexVolume)) throw error
      log('warn', 'failed', { ...factsOf(pod, container), message: messageOf(error) })
      return undefined
    }
  }
}

/** What a line of the log says of a container. */
export function factsOf(pod: PodSandbox, container: Container): Record<string, unknown> {
  return { namespace: pod.namespace, pod: pod.name, uid: pod.uid, name: container.name, container: container.id }
}
