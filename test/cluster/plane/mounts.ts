import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import type { StatusDocument } from '../../../src/cli/commands/status-document.ts'
import { parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'
import { INSTALLED } from '../../kubelet/node/drivers.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import type { Door } from './pods.ts'

const DIRECTORIES = {
  flex: (volume: string) => `modekeep~fs/${volume}`,
  csi: (volume: string) => `kubernetes.io~csi/${volume}/mount`,
}

/** Where a pod's volume is mounted: kubelet calls it by its name in the pod, or that of the PersistentVolume. */
export const mountPoint = (door: Door, uid: string, volume = 'v') =>
  `${KUBELETS_ROOT}/pods/${uid}/volumes/${DIRECTORIES[door](volume)}`

/** The ids of what is mounted for it. */
export function mounts(door: Door, uid: string, volume = 'v'): string[] {
  const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
  return selectMountLayers(rows, mountPoint(door, uid, volume)).map(({ id }) => String(id))
}

/** The output of `modekeep status` on the node, for any exit status. */
export async function statusOfNode(): Promise<StatusDocument> {
  const { stdout } = await promisify(execFile)(INSTALLED, ['status', '--json']).catch((error) => error)
  return JSON.parse(stdout)
}

/** @throws {Error} what modekeep keeps of these pods' volumes, though the pods are gone */
export async function keepsNothingOf(...uids: readonly string[]): Promise<void> {
  const { mounts: recorded, unrecorded, unreadable } = await statusOfNode()
  const directories = [...recorded, ...unrecorded, ...unreadable].map(({ directory }) => directory)
  const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')).map((row) => row.mountPoint)
  const left = [...directories, ...rows].filter((path) => uids.some((uid) => path.includes(uid)))
  assert.deepEqual(left, [])
}
