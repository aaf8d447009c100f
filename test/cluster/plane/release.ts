import * as fs from 'node:fs'
import { createModekeepImage } from '../../../scripts/image/modekeep.ts'
import { importImages } from '../../kubelet/node/containerd.ts'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { type Resource, render } from '../../kubernetes/render.ts'
import { kustomization } from '../../kubernetes/tree.ts'
import type { Cluster } from './cluster.ts'

const NAMESPACE = 'kube-system'

/** Gives the node the image of driver/kubernetes, with this executable. */
export function giveImage({ elsewhere, busybox }: Cluster, version: string, binary = BINARY): void {
  const archive = `${elsewhere}/image-${version}.tar`
  fs.writeFileSync(archive, createModekeepImage({ binary, version, busybox, licence: '' }))
  importImages(archive)
  fs.rmSync(archive)
}

/** A kustomization of the release for this cluster. */
function kustomizationOf(cluster: Cluster, version: string, components: readonly string[]): string {
  const before = cluster.atLeast('1.30') ? [] : ['components/before-1.30']
  const allow = [
    { sources: [`${cluster.volumes}/*`], fsTypes: ['bind', 'tmpfs', 'fuse.bindfs'] },
    { sources: ['bob@127.0.0.1:/srv/*'], fsTypes: ['fuse.sshfs'] },
    { sources: ['//files.example.com/team'], fsTypes: ['cifs'] },
  ]
  // The node's plugin directory is Flatcar's.
  return kustomization('overlays/flatcar', {
    components: [...before, ...components],
    image: { newTag: version },
    // The pods' network of this cluster does not lead to the API server.
    config: JSON.stringify({ allow, csiPodInfoOnMount: true }),
    patches: cluster.atLeast('1.21') || components.includes('components/uninstall') ? [] : [probeSoon(components)],
  })
}

/** The components whose container has a readinessProbe to patch. */
const WITH_PROBE = ['csi', 'nri']

/** Kubelet 1.20 lets a random part of a probe's period go by before it probes for the first time. */
const probeSoon = (components: readonly string[]): Resource => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'modekeep' },
  spec: {
    template: {
      spec: {
        containers: ['modekeep', ...components.filter((name) => WITH_PROBE.includes(name))].map((name) => ({
          name,
          readinessProbe: { periodSeconds: 2 },
        })),
      },
    },
  },
})

/** All of the release for this cluster, as `kubectl apply -k` sends it. */
export const releaseOf = (
  cluster: Cluster,
  version: string,
  components: readonly string[] = componentsFor(cluster),
): Resource[] => render(kustomizationOf(cluster, version, components))

/** Those that add a door, each by the name of its container. */
export const componentsFor = ({ asksPlugins }: Cluster): string[] => ['csi', ...(asksPlugins ? ['nri'] : [])]

/** Applies it by `kubectl apply -k` and waits until the pod of the DaemonSet is ready and kubelet has the CSI driver. */
export async function applyRelease(cluster: Cluster): Promise<void> {
  giveImage(cluster, '1')
  await cluster.applyKustomization(kustomizationOf(cluster, '1', componentsFor(cluster)))
  await rolledOut(cluster)
}

/** As `kubectl delete -k` does; returns when no pod of the DaemonSet is left. */
export async function withdrawRelease(cluster: Cluster, components?: readonly string[]): Promise<void> {
  await cluster.withdraw(...releaseOf(cluster, '1', components))
  await until('no pod of the DaemonSet is left', async () => (await podsOfRelease(cluster)).length === 0)
}

/** The names of the DaemonSet's pods. */
export async function podsOfRelease({ kubectl }: Cluster): Promise<string[]> {
  const found = await kubectl('get', 'pods', '-n', NAMESPACE, '-l', 'app.kubernetes.io/name=modekeep', '-o', 'name')
  return found.split('\n').filter(Boolean)
}

export async function rolledOut(cluster: Cluster): Promise<void> {
  await cluster
    .kubectl('rollout', 'status', 'daemonset/modekeep', '-n', NAMESPACE, '--timeout=90s')
    .catch(async (error) => {
      const state = await cluster.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'wide')
      const events = await cluster.kubectl('get', 'events', '-n', NAMESPACE)
      throw new Error(`${error.message}\n${state}\n${events}`)
    })
  await until('kubelet has the CSI driver', async () => {
    const drivers: Resource[] = (await cluster.get('csinode/node'))?.spec.drivers ?? []
    return drivers.some(({ name }) => name === 'modekeep.csi')
  })
}
