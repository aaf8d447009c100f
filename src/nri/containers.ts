import { type ContainerOrder, type ContainerOutcome, IN_THE_MAKING_MS, type Known } from '../container-mount/order.ts'
import { restrictOptions } from '../mount-table/mount-restrictions.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { askedFor, isAsking, isOptional } from './asked.ts'
import { hasUserNamespace, isConcerned, lackingIn } from './decide.ts'
import { Hanging } from './hanging.ts'
import { isUnmapped, knownOf } from './known.ts'
import { onceLate, tooLate, UNHEARD } from './late.ts'
import { type Container, type Mount, type PodSandbox, STATE } from './messages.ts'
import { newestOf } from './newest.ts'
import { SandboxGroups } from './sandbox-groups.ts'
import type { Containers } from './service.ts'
import { factsOf, ordersFrom, type Sources } from './sources.ts'

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
  /** Keeps on record that a container does without, unless that is on record. Never throws. */
  without(order: ContainerOrder, why: string): Promise<void>
  /** What is left of containers that need it no more goes. Never throws. */
  reconcile(known: Known): Promise<void>
}

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
  /** What is done for it, one thing after the other. */
  readonly done: Promise<void>
  /** Its end was told: runtimes tell of it twice. */
  readonly isGone?: true
}

/** Decides for each container what becomes of its mounts, and has it done. */
export function nodeContainers({ clones, deadlineMs, ...sources }: Settings): Containers {
  const concerned = new Map<string, Concerned>()
  const hanging = new Hanging()
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
    const done = before.done.then(() => clones.forget(container))
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
  const orderFor = ordersFrom({ ...sources, groupsOfPod: (sandbox) => groups.of(sandbox) })

  /** @param made goes on where it is late: what it has made by then goes */
  async function answer(
    made: Promise<readonly Mount[] | undefined>,
    late: Promise<never>,
    pod: PodSandbox,
    container: Container,
  ): Promise<readonly Mount[] | undefined> {
    try {
      return await Promise.race([made, late])
    } catch (error) {
      const level = mayStartWithout(pod) ? 'warn' : 'error'
      const event = level === 'warn' ? 'without' : 'refused'
      const isUnexpected = error instanceof Refusal ? {} : { unexpected: true }
      log(level, event, { ...factsOf(pod, container), message: messageOf(error), ...isUnexpected })
      if (level === 'warn') {
        void inTurn(container.id, () => noteWithout(pod, container, messageOf(error)))
        return undefined
      }
      const refusal =
        error instanceof Refusal ? error : new Refusal(`modekeep failed: ${messageOf(error)}; see its log on the node`)
      throw askedFor(pod.annotations, refusal)
    }
  }

  return {
    create(pod, container, unheard) {
      if (!isConcerned(pod, container)) return undefined
      const timeout = AbortSignal.timeout(deadlineMs)
      const late = AbortSignal.any([timeout, unheard])
      let order: ContainerOrder | undefined
      let hasBegun = false
      const work = async () => {
        order = await orderFor(pod, container)
        if (order === undefined) return undefined
        hanging.refuse(order)
        late.throwIfAborted()
        hasBegun = true
        const { mounts } = await hanging.during(order, timeout, clones.attach(order, late))
        late.throwIfAborted()
        const without = order.clones.flatMap(({ volume }, at) => {
          const outcome = mounts[at]
          return outcome?.do === 'without' ? [{ volume, message: outcome.why }] : []
        })
        if (without.length > 0) log('warn', 'without', { ...factsOf(pod, container), volumes: without })
        return mountsOf(order, mounts)
      }
      const before = concerned.get(container.id)?.done ?? Promise.resolve()
      const made = before.then(work)
      // What is left of an attempt that failed, or was ended, goes: no event may come of such a container.
      const done = made.then(
        () => {},
        () => (hasBegun ? clones.forget(container.id) : undefined),
      )
      concerned.set(container.id, { sandbox: container.podSandboxId, done })
      // Nobody tells of the end of a container that was refused: kubelet tries another one.
      made.catch(() => {
        if (!mayStartWithout(pod)) forgetAfter(container.id, done)
      })
      return answer(
        made,
        onceLate(late, () => (unheard.aborted ? new Refusal(UNHEARD) : tooLate(pod, order))),
        pod,
        container,
      )
    },

    started(pod, container) {
      const { id, podSandboxId } = container
      if (!concerned.has(id)) {
        // It was in the making when the runtime told of all there is.
        if (!isAsking(pod.annotations) && !hasUserNamespace(container)) return
        concerned.set(id, { sandbox: podSandboxId, done: Promise.resolve() })
        if (isAsking(pod.annotations) && isUnmapped(container)) {
          void inTurn(id, () => noteWithout(pod, container, AWAY))
          return
        }
      }
      void inTurn(id, () => clones.release(id))
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
        concerned.set(container.id, { sandbox: container.podSandboxId, done })
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

function mountsOf({ clones }: ContainerOrder, outcomes: ContainerOutcome['mounts']): Mount[] {
  return clones.flatMap(({ destination, options }, at): Mount[] => {
    const outcome = outcomes[at]
    if (outcome?.do !== 'replace') return []
    const restricted = restrictOptions(options, outcome.restrictions ?? [])
    return [{ destination, type: 'bind', source: outcome.source, options: restricted }]
  })
}

function mayStartWithout({ annotations }: PodSandbox): boolean {
  try {
    return isOptional(annotations)
  } catch {
    return false
  }
}
