import type { CloneRequest } from '../../container/clone-request.ts'
import type { FaultCode } from '../../errors/entries/index.ts'
import { formatError } from '../../errors/refusal.ts'
import { restrictMountOptions } from '../../kernel/mount-table/mount-flags.ts'
import type { LogEvent } from '../../log/call-log.ts'
import type { ContainerEventHandler } from './container-lifecycle.ts'
import { isContainerInUserNamespace } from './decide-clones.ts'
import { mayBeModekeepVolume } from './pod-volumes.ts'
import type { Container, ContainerMount, PodSandbox } from './protocol.ts'
import { listContainerLogFields } from './request-reader.ts'
import type { ReadMountRestrictions } from './worker-tasks.ts'

interface MountRestrictionSettings {
  readonly kubeletDir: string
  readonly readRestrictions: ReadMountRestrictions
  /** Time limit for the mount options of a container, ms. */
  readonly waitMs: number
  /** A read that no container waits for any more is cancelled after this time, ms. */
  readonly giveUpMs: number
  readonly log: LogEvent
}

/** A worker reads a mount table of 100,000 rows in this time, which is well below the runtime's own deadline. */
export const MOUNT_RESTRICTIONS_WAIT_MS = 500
/** Since the runtime's request, which the runtime gives up after two seconds. Clones may have taken a part of it. */
const MOUNT_RESTRICTIONS_END_MS = 1900
const MIN_MOUNT_RESTRICTIONS_WAIT_MS = 100
export const MOUNT_RESTRICTIONS_GIVE_UP_MS = 60_000

/** Further mounts of a container are not read. */
const MAX_RESTRICTED_MOUNTS = 200

/**
 * Adds the restrictions of modekeep's own volumes (`nosuid`, `noexec`, …) to the options of their mounts, because a current
 * runc clears restrictions that it is not given. A container waits at most `waitMs` and is never refused: without an answer
 * it gets its mounts unchanged, and the log has a warning.
 */
export function restrictModekeepMounts(
  containers: ContainerEventHandler,
  settings: MountRestrictionSettings,
): ContainerEventHandler {
  const { kubeletDir, readRestrictions, waitMs, giveUpMs, log } = settings
  /** Sources whose last read has not ended. Further containers do not wait for them. */
  const slow = new Set<string>()

  async function readRestrictedMounts(
    pod: PodSandbox,
    container: Container,
    mounts: readonly ModekeepMount[],
    startedAt: number,
  ): Promise<ContainerMount[]> {
    const warn = (message: string) =>
      log('warn', 'unrestricted', {
        ...listContainerLogFields(pod, container),
        destinations: listMountDestinations(mounts),
        message,
        code: 'map-options' satisfies FaultCode,
      })
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
    const untilEndMs = MOUNT_RESTRICTIONS_END_MS - (performance.now() - startedAt)
    const leftMs = Math.min(waitMs, Math.max(untilEndMs, MIN_MOUNT_RESTRICTIONS_WAIT_MS))
    try {
      const read = await Promise.race([reading, resolveAfterTimeout(leftMs)])
      if (read !== undefined)
        return mounts.flatMap(({ mount }, index) => addRestrictionsToMount(mount, read[index] ?? []))
      for (const { source } of mounts) slow.add(source)
      const done = () => {
        for (const { source } of mounts) slow.delete(source)
      }
      reading.then(done, done)
      warn(`the mount options could not be read within ${Math.round(leftMs)} ms: the container starts without them`)
    } catch (error) {
      warn(`the mount options could not be read: ${formatError(error)}`)
    }
    return []
  }

  return {
    ...containers,
    create(pod, container, unheard) {
      const startedAt = performance.now()
      const answer = containers.create(pod, container, unheard)
      const mounts = findModekeepMounts(kubeletDir, pod, container)
      if (mounts.length === 0) return answer
      return appendRestrictedMounts(answer, mounts, (others) => readRestrictedMounts(pod, container, others, startedAt))
    },
  }
}

/** A mount that may be one of modekeep's own volumes. */
interface ModekeepMount extends Pick<CloneRequest, 'destination' | 'source'> {
  readonly mount: ContainerMount
}

/** A mount that is replaced by its clone has the clone's options, so those of its volume are not read. */
async function appendRestrictedMounts(
  answer: Promise<readonly ContainerMount[] | undefined> | undefined,
  mounts: readonly ModekeepMount[],
  readRestricted: (others: readonly ModekeepMount[]) => Promise<readonly ContainerMount[]>,
): Promise<readonly ContainerMount[]> {
  const clones = (await answer) ?? []
  const cloned = new Set(listMountDestinations(clones))
  const others = mounts.filter(({ destination }) => !cloned.has(destination))
  return others.length === 0 ? clones : [...clones, ...(await readRestricted(others))]
}

/**
 * Finds the mounts that may be modekeep's own volumes, by their sources alone. Skips containers with a user namespace:
 * there the kernel keeps the flags, and a replaced mount would lose the mapping of its ids.
 */
function findModekeepMounts(kubeletDir: string, pod: PodSandbox, container: Container): ModekeepMount[] {
  if (isContainerInUserNamespace(container)) return []
  const found = container.mounts.flatMap((mount): ModekeepMount[] => {
    // Runtimes resolve symbolic links in a source, so the path of kubelet's directory may differ from kubeletDir.
    const at = mount.source.indexOf(`/pods/${pod.uid}/volume`)
    if (at < 0 || (mount.type !== 'bind' && mount.type !== '') || !mayBeModekeepVolume(mount)) return []
    const { destination } = mount
    return [{ mount, destination, source: `${kubeletDir}${mount.source.slice(at)}` }]
  })
  return found.slice(0, MAX_RESTRICTED_MOUNTS)
}

function addRestrictionsToMount(mount: ContainerMount, restrictions: readonly string[]): ContainerMount[] {
  const options = restrictMountOptions(mount.options, restrictions)
  return options.length === mount.options.length && options.every((option) => mount.options.includes(option))
    ? []
    : [{ ...mount, options }]
}

const listMountDestinations = (mounts: readonly { destination: string }[]) =>
  mounts.map(({ destination }) => destination)

function resolveAfterTimeout(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref())
}
