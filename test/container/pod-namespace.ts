import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import type { IdRange } from '../../src/kernel/id-map.ts'
import { openUserNamespace } from '../../src/kernel/linux/mounts.ts'
import type { TestNode } from './node.ts'

/** As kubelet gives them to pods, here in two ranges. */
export const RANGES: IdRange[] = [
  { disk: 0, shown: 700_000, count: 1000 },
  { disk: 2000, shown: 900_000, count: 100 },
]

export function writeIds({ pod }: Pick<TestNode, 'pod'>, ranges: readonly IdRange[] = RANGES): void {
  const mappings = ranges.map(({ disk, shown, count }) => ({ hostId: shown, containerId: disk, length: count }))
  fs.writeFileSync(`${pod}/userns`, JSON.stringify({ uidMappings: mappings, gidMappings: mappings }))
}

/** Runs a script in the pod's user namespace as user 5 of it. */
export function inPod(group: number, script: string): string {
  const namespace = openUserNamespace({ uids: RANGES, gids: RANGES })
  onTestFinished(() => fs.closeSync(namespace))
  const enter = [`--user=/proc/${process.pid}/fd/${namespace}`, 'setpriv', '--reuid', '5', '--regid', String(group)]
  const args = [...enter, '--clear-groups', 'sh', '-c', `(${script}) 2>&1 || true`]
  return execFileSync('nsenter', args, { encoding: 'utf8' }).trim()
}

/** As a runtime binds it. */
export function bound({ top }: Pick<TestNode, 'top'>, clone: string): string {
  const mount = `${top}/bound`
  fs.mkdirSync(mount)
  execFileSync('mount', ['--bind', clone, mount])
  return mount
}
