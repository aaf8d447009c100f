import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { expect } from '../expect.ts'
import { ON_DISK } from '../node/disks.ts'
import type { RuntimeNode } from '../node/node.ts'
import type { Pod } from '../node/pod.ts'
import type { CsiVolume } from '../node/volumes.ts'

/** A name that no other case has, in lower case. */
export const GROUP = 'modekeep/group'
export const OPTIONAL = 'modekeep/group-optional'

/** Of each file that `fill` makes its group, as the container sees it, in one text. */
export async function groupsSeen(pod: Pod, at = '/data', id?: string): Promise<string> {
  const files = ['', '/one', '/sub', '/sub/two'].map((path) => `${at}${path}`)
  const said = await pod.says(`stat -c %g ${files.join(' ')}`, id)
  return [...new Set(said.split('\n'))].join()
}

/** The container sees the group everywhere, reads and writes; what it makes has the volume's own group on disk. */
export async function mustWrite(pod: Pod, volume: string, group: number, at = '/data', id?: string): Promise<void> {
  expect(`${pod.wish.name}: the groups it sees`, await groupsSeen(pod, at, id), String(group))
  const name = `of-${pod.wish.name}`
  await pod.says(`cat ${at}/one ${at}/sub/two && echo more >>${at}/one && echo new >${at}/sub/${name}`, id)
  expect('the new file, as it is seen', await pod.says(`stat -c %g ${at}/sub/${name}`, id), String(group))
  expect('the new file, on disk', fs.statSync(`${volume}/sub/${name}`).gid, ON_DISK)
  mustBeUntouched(volume)
}

/** What `fill` has made has its owner and group on disk. */
export function mustBeUntouched(volume: string): void {
  for (const path of ['', '/one', '/sub', '/sub/two']) {
    const { uid, gid } = fs.statSync(`${volume}${path}`)
    expect(`owner and group of ${path || '/'} on disk`, [uid, gid], [0, ON_DISK])
  }
}

/** What doctor says of the container runtime. */
export function doctorsRuntime(): string[] {
  // What else there is on the machine may be a fault.
  const { stdout } = spawnSync(BINARY, ['doctor', '--json'], { encoding: 'utf8' })
  const { findings }: { findings: { area: string; level: string; text: string }[] } = JSON.parse(stdout)
  return findings.filter(({ area }) => area === 'runtime').map(({ level, text }) => `${level} ${text}`)
}

/** Mounts of clones on the node. */
export function clonesOnNode(): string[] {
  return fs
    .readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => /^\/var\/lib\/modekeep\/.*\/mounts\/.+/.test(path))
}

/** The plugin gets the start event after the start, so its clones may exist a moment longer. */
export async function mustHaveNoClones(): Promise<void> {
  await until('the node has no clones', () => clonesOnNode().length === 0, 10)
}

/** What a promise is refused with. @throws {Error} if it is not */
export async function refusal(what: string, work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  throw new Error(`${what}: it was not refused`)
}

/** A pod that requests a group for its volume at /data. */
export const createGroupPod = (
  node: RuntimeNode,
  name: string,
  volume: CsiVolume,
  asked: string,
  more: Record<string, string> = {},
) =>
  node.pod({
    name,
    annotations: { [GROUP]: asked, ...more },
    volumes: { data: volume },
    mounts: [{ name: 'data', mountPath: '/data' }],
    groups: [2000],
  })
