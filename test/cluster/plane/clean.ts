import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { NODE } from './certificates.ts'
import type { Cluster } from './cluster.ts'
import { statusOfNode } from './mounts.ts'
import { gone } from './pods.ts'
import { releaseOf, rolledOut } from './release.ts'

/** Namespaces that a cluster has from the start. */
const SYSTEM = /^(default|kube-.*)$/
/** What cases make and nothing of a cluster or the release is. */
const KINDS = ['deployments', 'statefulsets', 'replicasets', 'pods', 'persistentvolumeclaims']
const POLICIES = 'validatingadmissionpolicybindings,validatingadmissionpolicies'
const PATIENCE_S = 120

/**
 * Returns what earlier cases left, a phrase each. Empty on a clean node.
 * @param taints of the node
 */
function listRemains(
  pods: readonly string[],
  taints: readonly { key: string }[] | undefined,
  { mounts, unrecorded, unreadable }: { mounts: Directories; unrecorded: Directories; unreadable: Directories },
): string[] {
  return [
    ...pods.map((name) => `pod ${name}`),
    ...(taints ?? []).map(({ key }) => `taint ${key}`),
    ...[...mounts, ...unrecorded, ...unreadable].map(({ directory }) => `mount ${directory}`),
  ]
}

type Directories = readonly { directory: string }[]

async function findRemains(cluster: Cluster): Promise<string[]> {
  const pods = await names(cluster, 'pods', '--all-namespaces', '--field-selector', 'metadata.namespace!=kube-system')
  return listRemains(pods, (await cluster.get(`node/${NODE}`))?.spec.taints, await statusOfNode())
}

/**
 * Brings the cluster to where a case begins: the release runs, and no pod, volume, policy or taint of a case is left.
 * @throws {Error} what is left all the same
 */
export async function cleanUp(cluster: Cluster): Promise<void> {
  const { kubectl } = cluster
  const { items }: { items: Resource[] } = JSON.parse(await kubectl('get', 'pods', '-n', 'default', '-o', 'json'))
  if (cluster.atLeast('1.30')) await kubectl('delete', POLICIES, '--all', '--ignore-not-found')
  const taints: Resource[] = (await cluster.get(`node/${NODE}`))?.spec.taints ?? []
  const keys = [...new Set(taints.map(({ key }) => key as string))].filter((key) => !key.includes('kubernetes.io/'))
  if (keys.length > 0) await kubectl('taint', 'node', NODE, ...keys.map((key) => `${key}-`))
  for (const kind of KINDS) await kubectl('delete', kind, '--all', '-n', 'default', '--wait=false', '--grace-period=0')
  const spaces = (await names(cluster, 'namespaces')).filter((name) => !SYSTEM.test(name))
  if (spaces.length > 0) await kubectl('delete', 'namespace', '--wait', `--timeout=${PATIENCE_S}s`, ...spaces)
  await kubectl('delete', 'persistentvolumes', '--all', '--wait=false')
  await cluster.apply(...releaseOf(cluster, '1'))
  await rolledOut(cluster)
  for (const { metadata } of items) await gone(metadata.uid)
  await assertClean(cluster)
}

/** @throws {Error} what is left of other cases */
async function assertClean(cluster: Cluster): Promise<void> {
  await until(
    'no case has left anything',
    async () => {
      const remains = await findRemains(cluster)
      if (remains.length > 0) throw new Error(remains.join(', '))
      return true
    },
    PATIENCE_S,
  )
}

async function names({ kubectl }: Cluster, ...what: string[]): Promise<string[]> {
  const found = await kubectl('get', ...what, '-o', 'name')
  return found
    .split('\n')
    .filter(Boolean)
    .map((name) => name.replace(/^[^/]*\//, ''))
}
