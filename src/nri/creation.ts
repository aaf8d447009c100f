import { type ContainerOrder, type ContainerOutcome, refusalFor } from '../container-mount/order.ts'
import type { Level } from '../log/call-log.ts'
import { restrictOptions } from '../mount-table/mount-restrictions.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { askedFor, isOptional } from './asked.ts'
import type { Clones } from './clones.ts'
import { isConcerned } from './decide.ts'
import { Gate } from './gate.ts'
import { Hanging } from './hanging.ts'
import { type AttachProgress, onceLate, tooLate, UNHEARD } from './late.ts'
import type { Container, Mount, PodSandbox } from './messages.ts'
import { OwnTime } from './own-time.ts'
import { RefusedContainers } from './refused-containers.ts'
import { factsOf, type ordersFrom } from './sources.ts'

/** What has been begun for a container, one thing after the other. */
export interface Turns {
  /** Settles once all that was begun for the container before is done. */
  before(container: string): Promise<void>
  begin(pod: PodSandbox, container: Container, done: Promise<void>): void
  /** Nothing more is done for a container once that is done. */
  forgetAfter(container: string, done: Promise<void>): void
  /** Records, after all else, that it does without. */
  noteWithout(pod: PodSandbox, container: Container, why: string): void
}

export interface CreationSettings {
  readonly clones: Clones
  readonly deadlineMs: number
  readonly orderFor: ReturnType<typeof ordersFrom>
  readonly turns: Turns
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

const STALLED =
  'is not mapped while a volume of the same pod, or the same volume of another pod, does not answer: kubelet tries again'

/** So many containers are read up at a time: each takes milliseconds. */
const READ_AT_A_TIME = 4

/** Answers the runtime for each container that is to be created. */
export function containerCreator({ clones, deadlineMs, orderFor, turns, log }: CreationSettings) {
  const hanging = new Hanging()
  const refused = new RefusedContainers()
  const gate = new Gate(READ_AT_A_TIME)

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
        turns.noteWithout(pod, container, messageOf(error))
        return undefined
      }
      const refusal =
        error instanceof Refusal ? error : new Refusal(`modekeep failed: ${messageOf(error)}; see its log on the node`)
      throw askedFor(pod.annotations, refusal)
    }
  }

  return (pod: PodSandbox, container: Container, unheard: AbortSignal) => {
    if (!isConcerned(pod, container)) return undefined
    const remembered = refused.find(pod, container)
    let order: ContainerOrder | undefined
    let reading = ''
    let job: AttachProgress | undefined
    let isQueued = false
    let hasBegun = false
    const own = new OwnTime(deadlineMs, () => isQueued || (job?.isWaiting === true && !job.isBlocked))
    const late = AbortSignal.any([own.late, unheard])

    const remember = (refusal: Refusal) => {
      const wanted = order
      const retry = (giveUp: AbortSignal) =>
        wanted === undefined ? orderFor(pod, container) : clones.check(wanted, giveUp)
      refused.remember(pod, container, { refusal, order }, retry)
      return refusal
    }
    const read = () =>
      orderFor(pod, container, (what) => {
        reading = what
      })
    const work = async () => {
      isQueued = true
      order = await gate.run(read, late, () => {
        isQueued = false
      })
      if (order === undefined) return undefined
      hanging.refuse(order)
      if (refused.isStalled(pod, container, order)) {
        throw remember(new Refusal(order.clones.map((one) => refusalFor(one, STALLED))))
      }
      late.throwIfAborted()
      hasBegun = true
      const attaching = clones.attach(order, late, (running) => {
        job = running
      })
      const { mounts } = await hanging.during(order, own.late, attaching)
      late.throwIfAborted()
      const without = order.clones.flatMap(({ volume }, at) => {
        const outcome = mounts[at]
        return outcome?.do === 'without' ? [{ volume, message: outcome.why }] : []
      })
      if (without.length > 0) log('warn', 'without', { ...factsOf(pod, container), volumes: without })
      return mountsOf(order, mounts)
    }

    const before = turns.before(container.id)
    const made = remembered === undefined ? before.then(work) : Promise.reject<undefined>(remembered)
    // What is left of an attempt that failed, or was ended, goes: no event may come of such a container.
    const cleaned = made.then(
      () => {},
      () => (hasBegun ? clones.forget(container.id, pod.namespace) : undefined),
    )
    const done = before.then(() => cleaned)
    turns.begin(pod, container, done)
    // Nobody tells of the end of a container that was refused: kubelet tries another one.
    made.catch(() => {
      if (!mayStartWithout(pod)) turns.forgetAfter(container.id, done)
    })
    const since = performance.now()
    const isLate = onceLate(late, () => {
      const refusal = tooLate(pod, { order, reading, job })
      if (!unheard.aborted) return remember(refusal)
      // The runtime may have given up first, on a node where this thread got no processor time.
      if (performance.now() - since >= deadlineMs) remember(refusal)
      return new Refusal(UNHEARD)
    })
    const answered = answer(made, isLate, pod, container)
    const stop = () => own[Symbol.dispose]()
    answered.then(stop, stop)
    return answered
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
