import * as fs from 'node:fs'
import type { SoakNode } from './node.ts'
import { same } from './odd.ts'
import { PodLife } from './pod.ts'
import type { Scene } from './scene.ts'
import { mustShowImageAsMade } from './shown.ts'
import type { Volumes } from './volumes.ts'

/** Plays one round. @throws {Error} what was odd about it */
export async function play(node: SoakNode, volumes: Volumes, { seed, kind, pods }: Scene): Promise<void> {
  const isMixed = new Set(pods.map(({ group }) => group)).size > 1
  const lives = pods.map((plan) => new PodLife(node, volumes, kind, plan, isMixed))
  const ends = await Promise.allSettled(lives.map((life) => life.live()))
  const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
  if (faults.length > 0)
    throw faults.length === 1 ? faults[0] : new AggregateError(faults, faults.map(String).join('; '))
  if (kind === 'flip') volumes.removeOldContent()
  if (!lives.some((life) => life.hasRestorePending(lives))) return
  if (kind === 'keep' || kind === 'grant') volumes.mustBeOriginal(volumes.tree)
  if (kind === 'sub path') volumes.mustBeOriginal(volumes.sub)
  if (kind === 'image') await lookAtImage(node, volumes, `${seed}-look`)
}

/** Mounts the image without any ownership. @throws {Odd} unless it is as it was made */
export async function lookAtImage(node: SoakNode, volumes: Volumes, pod: string): Promise<void> {
  const directory = node.directoryOf(pod)
  fs.mkdirSync(directory, { recursive: true })
  const options = JSON.stringify({ 'kubernetes.io/fsType': 'ext4', source: volumes.image })
  same('mount of the image', await node.ask('mount', [directory, options]), { status: 'Success' })
  try {
    mustShowImageAsMade(directory)
  } finally {
    same('unmount of the image', await node.ask('unmount', [directory]), { status: 'Success' })
    fs.rmdirSync(directory)
    fs.rmSync(`${node.top}/pods/${pod}`, { recursive: true })
  }
}
