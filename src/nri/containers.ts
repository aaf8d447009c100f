import type { ContainerOrder, ContainerOutcome, Known } from '../container-mount/order.ts'
import type { Level } from '../log/call-log.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import { isAsking, isOptional } from './asked.ts'
import { decide, hasUserNamespace, isConcerned, lackingIn } from './decide.ts'
import { type Container, type Mount, type PodSandbox, STATE } from './messages.ts'
import type { Containers } from './plugin.ts'
import type { PodVolumes } from './volume.ts'

/** Makes clones and takes them away, elsewhere: nothing of it is done by the thread that answers. */
export interface Clones {
  /**
   * @param late what is not done by then is given up
   * @throws {Refusal} whose text the pod's event shows
   */
  attach(order: ContainerOrder, late: AbortSignal): Promise<ContainerOutcome>
  /** The node's clones go: the container has its own. Never throws. */
  release(container: string): Promise<void>
  /** What there is of a container goes, its record too. Never throws. */
  forget(container: string): Promise<void>
  /** Keeps on record that a container does without, unless it has a record. Never throws. */
  without(order: ContainerOrder, why: string): Promise<void>
  /** What is left of containers that need it no more goes. Never throws. */
  reconcile(known: Known): Promise<void>
}

export interface Settings {
  /** As kubelet writes it in the sources of mounts. */
  readonly kubeletDir: string
  readonly clones: Clones
  readonly readConfig: () => Promise<{ config: Pick<NodeConfig, 'map'>; faults: readonly string[] }>
  /** How long a container may take, ms: well below the time after which a runtime goes on without its plugin. */
  readonly deadlineMs: number
  readonly lookAtPod: (kubeletDir: string, uid: string) => Promise<PodVolumes>
  /** The groups of its processes; undefined: nobody tells. Never rejects. */
  readonly groupsOfPod: (sandbox: string) => Promise<readonly number[] | undefined>
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

const AWAY =
  'it was created while no "modekeep nri" was asked, or what was on record of it is lost: make the pod again to give it the group'

/** Decides for each container what becomes of its mounts, and has it done. */
export function nodeContainers({
  kubeletDir,
  clones,
  readConfig,
  deadlineMs,
  lookAtPod,
  groupsOfPod,
  log,
}: Settings): Containers {
  /** Those that may have clones: nothing is asked about others. */
  const concerned = new Map<string, Promise<void>>()
  /** What is left over is taken away before clones are made: what the list does not know would go. */
  let reconciled: Promise<void> = Promise.resolve()

  /** What is done for one container, one thing after the other. */
  const inTurn = (container: string, work: () => Promise<void>): Promise<void> => {
    const before = concerned.get(container)
    if (before === undefined) return Promise.resolve()
    const done = before.then(work)
    concerned.set(container, done)
    return done
  }

  /** Of a container that runs: it may be gone meanwhile, and then so is all of this. */
  async function noteWithout(pod: PodSandbox, container: Container, why: string): Promise<void> {
    try {
      const order = lackingIn(pod, container, await lookAtPod(kubeletDir, pod.uid), { kubeletDir })
      if (order !== undefined) await clones.without(order, why)
    } catch (error) {
      log('warn', 'failed', { ...factsOf(pod, container), message: messageOf(error) })
    }
  }

  async function mountsFor(
    pod: PodSandbox,
    container: Container,
    late: AbortSignal,
  ): Promise<readonly Mount[] | undefined> {
    const isToAsk = container.user === undefined && isAsking(pod.annotations)
    const asking = isToAsk ? groupsOfPod(pod.id) : undefined
    const { config, faults } = await readConfig()
    if (faults.length > 0) throw new Refusal(faults)
    const volumes = await lookAtPod(kubeletDir, pod.uid)
    const order = decide(pod, container, volumes, { kubeletDir, map: config.map }, await asking)
    if (order === undefined) return undefined
    await reconciled
    if (late.aborted) return undefined
    const { mounts } = await attach(order, late)
    for (const [at, outcome] of mounts.entries()) {
      if (outcome.do !== 'without') continue
      log('warn', 'without', { ...factsOf(pod, container), volume: order.clones[at]?.volume, message: outcome.why })
    }
    return order.clones.flatMap(({ destination, options }, at): Mount[] => {
      const outcome = mounts[at]
      if (outcome?.do !== 'replace') return []
      return [{ destination, type: 'bind', source: outcome.source, options: [...options] }]
    })
  }

  /** What is left of an attempt that failed, or was ended, goes: no event may come of such a container. */
  async function attach(order: ContainerOrder, late: AbortSignal): Promise<ContainerOutcome> {
    try {
      const outcome = await clones.attach(order, late)
      late.throwIfAborted()
      return outcome
    } catch (error) {
      await clones.forget(order.container)
      throw error
    }
  }

  /** @param made goes on where it is late: what it has made by then goes */
  async function answer(
    made: Promise<readonly Mount[] | undefined>,
    late: AbortSignal,
    pod: PodSandbox,
    container: Container,
  ): Promise<readonly Mount[] | undefined> {
    try {
      return await Promise.race([made, refusalOnceLate(late)])
    } catch (error) {
      const level = mayStartWithout(pod) ? 'warn' : 'error'
      const event = level === 'warn' ? 'without' : 'refused'
      const isUnexpected = error instanceof Refusal ? {} : { unexpected: true }
      log(level, event, { ...factsOf(pod, container), message: messageOf(error), ...isUnexpected })
      if (level === 'warn') {
        void inTurn(container.id, () => noteWithout(pod, container, messageOf(error)))
        return undefined
      }
      throw error instanceof Refusal
        ? error
        : new Refusal(`modekeep failed: ${messageOf(error)}; see its log on the node`)
    }
  }

  return {
    create(pod, container) {
      if (!isConcerned(pod, container)) return undefined
      const late = AbortSignal.timeout(deadlineMs)
      const before = concerned.get(container.id) ?? Promise.resolve()
      const made = before.then(() => mountsFor(pod, container, late))
      const done: Promise<void> = made.then(
        () => {},
        () => {
          // Nobody tells of the end of a container that was refused: kubelet tries another one.
          if (!mayStartWithout(pod) && concerned.get(container.id) === done) concerned.delete(container.id)
        },
      )
      concerned.set(container.id, done)
      return answer(made, late, pod, container)
    },

    started(container) {
      void inTurn(container, () => clones.release(container))
    },

    gone(container) {
      void inTurn(container, () => clones.forget(container))
      concerned.delete(container)
    },

    synchronize(pods, containers) {
      const sandboxes = new Map(pods.map((pod) => [pod.id, pod]))
      concerned.clear()
      for (const container of containers) {
        const pod = sandboxes.get(container.podSandboxId)
        if ((pod && isAsking(pod.annotations)) || hasUserNamespace(container)) {
          concerned.set(container.id, Promise.resolve())
        }
      }
      const idsOf = (isWanted: (state: number) => boolean) =>
        containers.filter(({ state }) => isWanted(state)).map(({ id }) => id)
      const known = {
        at: Date.now(),
        created: idsOf((state) => state === STATE.created),
        started: idsOf((state) => state !== STATE.created),
      }
      reconciled = reconciled.then(() => clones.reconcile(known))
      // One after the other, for none of them is in a hurry.
      let noted = reconciled
      for (const container of containers) {
        const pod = sandboxes.get(container.podSandboxId)
        if (container.state !== STATE.running || pod === undefined || !isAsking(pod.annotations)) continue
        noted = noted.then(() => inTurn(container.id, () => noteWithout(pod, container, AWAY)))
      }
    },
  }
}

/** Rejects, where that is still of interest, when time is up. */
function refusalOnceLate(late: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const why = 'modekeep could not map the volumes in time: the next attempt may be faster; see its log on the node'
  late.addEventListener('abort', () => reject(new Refusal(why)), { once: true })
  return promise
}

function mayStartWithout({ annotations }: PodSandbox): boolean {
  try {
    return isOptional(annotations)
  } catch {
    return false
  }
}

function factsOf(pod: PodSandbox, container: Container): Record<string, unknown> {
  return { namespace: pod.namespace, pod: pod.name, uid: pod.uid, name: container.name, container: container.id }
}
