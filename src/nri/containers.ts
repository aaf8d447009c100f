import { IN_THE_MAKING_MS, type Known } from '../container-mount/order.ts'
import { messageOf } from '../refusal/refusal.ts'
import { isAsking } from './asked.ts'
import type { Clones } from './clones.ts'
import { containerCreator } from './creation.ts'
import { hasUserNamespace, lackingIn } from './decide.ts'
import { isUnmapped, knownOf } from './known.ts'
import { type Container, type PodSandbox, STATE } from './messages.ts'
import { newestOf } from './newest.ts'
import { SandboxGroups } from './sandbox-groups.ts'
import type { Containers } from './service.ts'
import { factsOf, ordersFrom, type Sources } from './sources.ts'

export interface Settings extends Sources {
  readonly clones: Clones
  /** How long a container may take, ms: well below the time after which a runtime goes on without its plugin. */
  readonly deadlineMs: number
}

const AWAY =
  'it was created while no "modekeep nri" was asked, or what was on record of it is lost: make the pod again to give it the group'

/** What is known of a container of which clones may be made: nothing is asked about others. */
interface Concerned {
  readonly sandbox: string
  /** The pod's. */
  readonly namespace: string
  /** What is done for it, one thing after the other. */
  readonly done: Promise<void>
  /** Its end was told: runtimes tell of it twice. */
  readonly isGone?: true
}

/** Decides for each container what becomes of its mounts, and has it done. */
export function nodeContainers({ clones, deadlineMs, ...sources }: Settings): Containers {
  const concerned = new Map<string, Concerned>()
  const reconcile = newestOf<Known>((known) => clones.reconcile(known))
  let later: NodeJS.Timeout | undefined
  /** One after the other, for none of them is in a hurry. */
  let noted: Promise<void> = Promise.resolve()

  const inTurn = (container: string, work: () => Promise<void>): Promise<void> => {
    const before = concerned.get(container)
    if (before === undefined || before.isGone) return Promise.resolve()
    const done = before.done.then(work)
    concerned.set(container, { ...before, done })
    return done
  }

  /** Nothing more is done for a container once that is done, unless more has come. */
  const forgetAfter = (container: string, done: Promise<void>) => {
    void done.then(() => {
      if (concerned.get(container)?.done === done) concerned.delete(container)
    })
  }

  const gone = (container: string) => {
    const before = concerned.get(container)
    if (before === undefined || before.isGone) return
    const done = before.done.then(() => clones.forget(container, before.namespace))
    concerned.set(container, { ...before, done, isGone: true })
    forgetAfter(container, done)
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

  const { kubeletDir, lookAtPod, log } = sources
  const groups = new SandboxGroups(sources.groupsOfPod)

  const create = containerCreator({
    clones,
    deadlineMs,
    orderFor: ordersFrom({ ...sources, groupsOfPod: (sandbox) => groups.of(sandbox) }),
    turns: {
      before: (container) => concerned.get(container)?.done ?? Promise.resolve(),
      begin: ({ namespace }, { id, podSandboxId }, done) =>
        void concerned.set(id, { sandbox: podSandboxId, namespace, done }),
      forgetAfter,
      noteWithout: (pod, container, why) => void inTurn(container.id, () => noteWithout(pod, container, why)),
    },
    log,
  })

  return {
    create,

    started(pod, container) {
      const { id, podSandboxId } = container
      const { namespace } = pod
      if (!concerned.has(id)) {
        // It was in the making when the runtime told of all there is.
        if (!isAsking(pod.annotations) && !hasUserNamespace(container)) return
        concerned.set(id, { sandbox: podSandboxId, namespace, done: Promise.resolve() })
        if (isAsking(pod.annotations) && isUnmapped(container)) {
          void inTurn(id, () => noteWithout(pod, container, AWAY))
          return
        }
      }
      void inTurn(id, () => clones.release(id, namespace))
    },

    gone,

    sandboxStarted({ id, annotations }) {
      if (isAsking(annotations)) groups.askAhead(id)
    },

    sandboxStopped(sandbox) {
      groups.forget(sandbox)
      for (const [container, of] of [...concerned]) if (of.sandbox === sandbox) gone(container)
    },

    synchronize(pods, containers) {
      const sandboxes = new Map(pods.map((pod) => [pod.id, pod]))
      const isOfAsking = ({ podSandboxId }: Container) => {
        const pod = sandboxes.get(podSandboxId)
        return pod !== undefined && isAsking(pod.annotations)
      }
      const before = new Map(concerned)
      concerned.clear()
      for (const container of containers) {
        if (!isOfAsking(container) && !hasUserNamespace(container)) continue
        const { done = Promise.resolve() } = before.get(container.id) ?? {}
        const { namespace = '' } = sandboxes.get(container.podSandboxId) ?? {}
        concerned.set(container.id, { sandbox: container.podSandboxId, namespace, done })
      }
      const unmapped = containers.filter(isUnmapped)
      const known = knownOf(containers)
      void reconcile(known)
      clearTimeout(later)
      later = setTimeout(() => void reconcile({ ...known, isLater: true }), IN_THE_MAKING_MS).unref()
      for (const container of unmapped) {
        const pod = sandboxes.get(container.podSandboxId)
        if (container.state === STATE.stopped || pod === undefined || !isAsking(pod.annotations)) continue
        void inTurn(container.id, () => {
          noted = noted.then(() => noteWithout(pod, container, AWAY))
          return noted
        })
      }
    },
  }
}
