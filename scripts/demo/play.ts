import { styleText } from 'node:util'
import type { Listed } from '../../test/helpers/tree.ts'
import { createMemoryNode, createRealNode } from './node.ts'
import { printDemoTable } from './table.ts'

const DEMO_NODES: Record<string, () => Promise<import('./node.ts').DemoNode>> = {
  root: async () => createRealNode('as root, the built binary, a private mount namespace, a real volume (tmpfs)'),
  'user-namespace': async () =>
    createRealNode('in a user namespace with subordinate ids, the built binary, a real volume (tmpfs)'),
  memory: () =>
    createMemoryNode('in memory (no root, no user namespace with subordinate ids: see subuid(5)); no kernel involved'),
}

const node = await (DEMO_NODES[process.argv[2] ?? 'memory'] ?? DEMO_NODES.memory)?.()
if (!node) throw new Error('no place to play')
try {
  console.log(`modekeep, played ${node.where}.\n`)
  console.log(`init answers ${await node.init()}\n`)
  console.log('Six files on the node, a pod with fsGroup 2000, ownership: walk.\n')

  const before = node.files()
  await node.mount('pod-a')
  const mounted = node.files()
  // Kubelet forgets its mounts when it restarts, and calls mount again while the pod runs.
  for (let restart = 0; restart < 3; restart++) await node.mount('pod-a')
  const restarted = node.files()
  const layers = node.layers('pod-a')
  await node.mount('pod-b')
  const shared = node.files()
  await node.unmount('pod-a')
  await node.unmount('pod-b')
  const restored = node.files()

  printDemoTable(before, { mounted, restarted, shared, restored })
  const proofs: [string, boolean][] = [
    ['No file has a permission bit it did not have before.', hasSameFileModes(before, mounted)],
    ['Every file has the group 2000 while it is mounted.', Object.values(mounted).every(({ gid }) => gid === 2000)],
    ['Three kubelet restarts changed nothing, not one ctime.', hasSameChangeTimes(mounted, restarted)],
    [`Three restarts left ${layers} mount, none stacked on another.`, layers === 1],
    ['A second pod on the same volume changed nothing, not one ctime.', hasSameChangeTimes(mounted, shared)],
    [
      'After the last pod, every group and mode is back.',
      hasSameFileModes(before, restored) && hasSameGroups(before, restored),
    ],
  ]
  console.log('')
  for (const [sentence, holds] of proofs) {
    console.log(`  ${holds ? styleText('green', 'shown ') : styleText('red', 'FAILED')}  ${sentence}`)
  }
  if (proofs.some(([, holds]) => !holds)) process.exitCode = 1
} finally {
  node.close()
}

function hasSameChangeTimes(a: Record<string, Listed>, b: Record<string, Listed>): boolean {
  return (
    Object.keys(a).every((path) => a[path]?.changed === b[path]?.changed) &&
    hasSameFileModes(a, b) &&
    hasSameGroups(a, b)
  )
}

/** Directories aside: they get set-gid, so that new files inherit the group. */
function hasSameFileModes(a: Record<string, Listed>, b: Record<string, Listed>): boolean {
  return Object.keys(a).every((path) => path === '.' || a[path]?.mode === b[path]?.mode)
}

function hasSameGroups(a: Record<string, Listed>, b: Record<string, Listed>): boolean {
  return Object.keys(a).every((path) => a[path]?.gid === b[path]?.gid)
}
