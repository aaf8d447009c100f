import type { CloneOrder, OwnMountsRequest } from '../container-mount/order.ts'
import type { Level } from '../log/call-log.ts'
import { restrictOptions } from '../mount-table/mount-restrictions.ts'
import { messageOf } from '../refusal/refusal.ts'
import { hasUserNamespace, isPerhapsOwn } from './decide.ts'
import type { Container, Mount, PodSandbox } from './messages.ts'
import type { Containers } from './service.ts'
import { factsOf } from './sources.ts'

/** Returns the mount options for each mount of a request. */
export type ReadRestrictions = (
  request: OwnMountsRequest,
  giveUp: AbortSignal,
) => Promise<readonly (readonly string[])[]>

export interface RestrictionSettings {
  readonly kubeletDir: string
  readonly readRestrictions: ReadRestrictions
  /** How long a container waits for its mount options, ms. */
  readonly waitMs: number
  /** When a read that no container waits for is given up, ms. */
  readonly giveUpMs: number
  /** Must not throw. */
  readonly log: (level: Level, event: string, facts?: Record<string, unknown>) => void
}

/** The time in which a worker reads a mount table of 100,000 rows, and well below the runtime's own deadline. */
export const RESTRICTIONS_WAIT_MS = 500
export const RESTRICTIONS_GIVE_UP_MS = 60_000

/** More mounts of one container are not read. */
const MAX_MOUNTS = 200

/**
 * Gives containers the restrictions of modekeep's own volumes (`nosuid`, `noexec`, …) as options of their mounts, which a
 * current runc clears otherwise. A container is never refused for it, and waits at most `waitMs`: without an answer it gets
 * its mounts as they are, with a warning in the log.
 */
export function restrictOwnMounts(containers: Containers, settings: RestrictionSettings): Containers {
  const { kubeletDir, readRestrictions, waitMs, giveUpMs, log } = settings
  /** Sources whose last read has not ended: no further container waits for them. */
  const slow = new Set<string>()

  async function restricted(pod: PodSandbox, container: Container, mounts: readonly OwnMount[]): Promise<Mount[]> {
    const warn = (message: string) =>
      log('warn', 'unrestricted', { ...factsOf(pod, container), destinations: destinationsOf(mounts), message })
    if (mounts.some(({ source }) => slow.has(source))) {
      warn('an earlier read of these mounts has not ended: the container starts without their mount options')
      return []
    }
    const request = {
      container: container.id,
      containerName: container.name,
      pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
      kubeletDir,
      mounts: mounts.map(({ destination, source }) => ({ destination, source })),
    }
    const reading = readRestrictions(request, AbortSignal.timeout(giveUpMs))
    try {
      const all = await Promise.race([reading, elapsed(waitMs)])
      if (all !== undefined) return mounts.flatMap((mount, at) => restrict(mount.mount, all[at] ?? []))
      for (const { source } of mounts) slow.add(source)
      const done = () => {
        for (const { source } of mounts) slow.delete(source)
      }
      reading.then(done, done)
      warn(`the mount options could not be read within ${waitMs} ms: the container starts without them`)
    } catch (error) {
      warn(`the mount options could not be read: ${messageOf(error)}`)
    }
    return []
  }

  return {
    ...containers,
    create(pod, container, unheard) {
      const answer = containers.create(pod, container, unheard)
      const mounts = findOwnMounts(kubeletDir, pod, container)
      if (mounts.length === 0) return answer
      return join(answer, restricted(pod, container, mounts))
    },
  }
}

/** A mount that may show a volume of modekeep's. */
interface OwnMount extends Pick<CloneOrder, 'destination' | 'source'> {
  readonly mount: Mount
}

/** The clones of a container first: a mount that is replaced by its clone has the clone's options. */
async function join(
  answer: Promise<readonly Mount[] | undefined> | undefined,
  restricted: Promise<readonly Mount[]>,
): Promise<readonly Mount[]> {
  const clones = (await answer) ?? []
  const cloned = new Set(destinationsOf(clones))
  return [...clones, ...(await restricted).filter(({ destination }) => !cloned.has(destination))]
}

/**
 * Finds the mounts that may be modekeep's own volumes, by their sources alone. Containers with a user namespace have none:
 * there the kernel keeps the flags, and a replaced mount would lose the mapping of its ids.
 */
export function findOwnMounts(kubeletDir: string, pod: PodSandbox, container: Container): OwnMount[] {
  if (hasUserNamespace(container)) return []
  const found = container.mounts.flatMap((mount): OwnMount[] => {
    // Runtimes resolve the links in a source: kubelet's directory may have another name there.
    const at = mount.source.indexOf(`/pods/${pod.uid}/volume`)
    if (at < 0 || (mount.type !== 'bind' && mount.type !== '') || !isPerhapsOwn(mount)) return []
    const { destination } = mount
    return [{ mount, destination, source: `${kubeletDir}${mount.source.slice(at)}` }]
  })
  return found.slice(0, MAX_MOUNTS)
}

function restrict(mount: Mount, restrictions: readonly string[]): Mount[] {
  const options = restrictOptions(mount.options, restrictions)
  return options.length === mount.options.length && options.every((option) => mount.options.includes(option))
    ? []
    : [{ ...mount, options }]
}

const destinationsOf = (mounts: readonly { destination: string }[]) => mounts.map(({ destination }) => destination)

function elapsed(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref())
}
