import { installNaive } from '../../kubelet/node/drivers.ts'
import { manifest, type PodWish } from '../../kubelet/node/manifest.ts'
import { type TestNode, waitForMounts } from '../../kubelet/node/node.ts'
import { Pod } from '../../kubelet/node/pod.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from './cluster.ts'
import { gone } from './pods.ts'

/** The cluster's node, whose pods come from the API server. The naive driver is put beside the release's. */
export function nodeOf(cluster: Cluster): TestNode {
  installNaive()
  const { volumes, elsewhere } = cluster
  const { kubelet } = cluster.daemons
  // Seen on 1.36. The kubelets between were not tried.
  const repeatsMounts = !cluster.atLeast('1.36')
  const give = async (wish: PodWish) => {
    const { metadata, spec, ...more } = manifest(wish) as Resource
    const { uid: _, ...named } = metadata
    await cluster.apply({ ...more, metadata: named, spec: { ...spec, automountServiceAccountToken: false } })
    return new Pod(wish, (await cluster.get(`pod/${wish.name}`))?.metadata.uid)
  }
  return {
    kubelet,
    repeatsMounts,
    volumes,
    elsewhere,
    give,
    run: async (wish) => (await give(wish)).running(),
    async remove(...pods) {
      await cluster.kubectl('delete', 'pod', '--wait=false', ...pods.map(({ wish }) => wish.name))
      for (const { uid } of pods) await gone(uid)
    },
    async restartKubelet(signal, pods) {
      await cluster.restart('kubelet', signal)
      await waitForMounts({ kubelet, repeatsMounts }, pods)
    },
  }
}
