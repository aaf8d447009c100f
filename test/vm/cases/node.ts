import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { ON_DISK } from '../../helpers/disks.ts'
import type { BinaryNode } from '../../helpers/kubelet-call.ts'

export const SUCCESS = { status: 'Success' }
/** The group that pods ask for. */
export const POD_GROUP = 2000

export function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: 'utf8' })
}

/** A directory with a file of group 100 among the node's volumes. @returns its path */
export function makeSource(node: BinaryNode): string {
  const source = `${node.volumes}/data`
  fs.mkdirSync(source)
  fs.writeFileSync(`${source}/file`, 'content\n')
  for (const path of [source, `${source}/file`]) fs.chownSync(path, 0, ON_DISK)
  return source
}

/** Mounts with arguments of mount(8), until the test has finished. */
export function mountUntilEnd(...args: string[]): void {
  run('mount', ...args)
  onTestFinished(() => {
    run('umount', '--lazy', args.at(-1) ?? '')
  })
}

/** A mount call for pod "a". */
export function mountPod(node: BinaryNode, source: string, ownership: string, more: object = {}) {
  const options = { source, ownership, 'kubernetes.io/fsGroup': String(POD_GROUP), ...more }
  return node.call('mount', node.podDirectory('a'), JSON.stringify(options))
}

/** A walk with `restoreOnUnmount` for pod "a", the repeated call, and the unmount. @returns the group that the pod saw */
export async function walkAndRestore(node: BinaryNode, source: string): Promise<number> {
  const answers = [
    await mountPod(node, source, 'walk', { restoreOnUnmount: 'true' }),
    await mountPod(node, source, 'walk', { restoreOnUnmount: 'true' }),
  ]
  const { gid } = fs.statSync(`${node.podDirectory('a')}/file`)
  answers.push(await node.call('unmount', node.podDirectory('a')))
  const failure = answers.find(({ status }) => status !== 'Success')
  if (failure) throw new Error(failure.message)
  return gid
}
