import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import type { CloneOutcome, CloneRequest, ContainerCloneRequest } from '../../src/container/clone-request.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { Session } from '../../src/state/session.ts'
import { mountNew, scratch } from '../real-mounts/mapped-volume.ts'

export const UID = '0a0b0c0d-1111-2222-3333-444455556666'
/** Tests at the same time have other mounts by other names. */
export const CONTAINER = randomBytes(32).toString('hex')

/** A node with one pod, whose volume `data` of group 500 is on a file system of its own, as another driver's is. */
export function nodeWith(fsType: string) {
  const top = scratch()
  const warnings: string[] = []
  const kubeletDir = `${top}/kubelet`
  const pod = `${kubeletDir}/pods/${UID}`
  const volume = `${mountNew(top, fsType)}/volume`
  const source = `${pod}/volumes/kubernetes.io~csi/data/mount`
  fs.mkdirSync(volume)
  fs.writeFileSync(`${volume}/file`, 'text')
  fs.chmodSync(`${volume}/file`, 0o660)
  fs.chownSync(`${volume}/file`, 0, 500)
  fs.chownSync(volume, 0, 500)
  fs.chmodSync(volume, 0o2770)
  fs.mkdirSync(source, { recursive: true })
  execFileSync('mount', ['--bind', volume, source])
  const session: Session = {
    host: linuxHost,
    config: { ...DEFAULT_CONFIG, stateDir: `${top}/state` },
    note: () => {},
    warn: (message) => warnings.push(message),
  }

  return {
    top,
    kubeletDir,
    pod,
    volume,
    source,
    session,
    warnings,
    stagingMount: `${top}/state/nri/mounts`,

    clone: (over: Partial<CloneRequest> = {}): CloneRequest => ({
      volume: 'data',
      destination: '/data',
      source,
      options: ['rbind', 'rprivate', 'rw'],
      group: 2000,
      requestedBy: 'annotation modekeep/group is "data=2000"',
      isOwn: false,
      grants: [{ fsTypes: ['ext4', 'xfs', 'btrfs', 'tmpfs', 'overlay'], systemGroups: true }],
      ...over,
    }),

    order: (clones: readonly CloneRequest[], over: Partial<ContainerCloneRequest> = {}): ContainerCloneRequest => ({
      container: CONTAINER,
      containerName: 'app',
      sandbox: '5a',
      pod: { namespace: 'default', name: 'web', uid: UID },
      hasUserNamespace: false,
      kubeletDir,
      clones,
      isOptional: false,
      ...over,
    }),

    /** @returns the mount point of each clone */
    async attach(order: ContainerCloneRequest): Promise<string[]> {
      const { mounts } = await attachContainerClones(session, order)
      return mounts.map(pathOf)
    },

    records: () => fs.readdirSync(`${top}/state/nri`).filter((name) => name !== 'mounts'),
    mounted: () => mountedBelow(`${top}/state`),
  }
}

export type TestNode = ReturnType<typeof nodeWith>

function pathOf(outcome: CloneOutcome): string {
  if (outcome.do !== 'replace') throw new Error(JSON.stringify(outcome))
  return outcome.source
}

export function mountedBelow(directory: string): string[] {
  const rows = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return rows.map((row) => row.split(' ')[4] ?? '').filter((point) => point.startsWith(`${directory}/`))
}
