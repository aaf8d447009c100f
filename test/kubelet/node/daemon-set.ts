import * as fs from 'node:fs'
import type { Architecture } from '../../../scripts/build/runtime.ts'
import { provideContainerRuntime } from '../../../scripts/fetch/packages.ts'
import { createImageEntries, describeModekeepImage } from '../../../scripts/image/modekeep.ts'
import { createOciArchive } from '../../../scripts/image/oci.ts'
import { one, render } from '../../kubernetes/render.ts'
import { kustomization, type Wishes } from '../../kubernetes/tree.ts'
import { ctr, importImages } from './containerd.ts'
import type { StandaloneNode } from './node.ts'
import type { Pod } from './pod.ts'

/** Makes the image of driver/kubernetes with this executable, and gives it to the node. */
export function giveImage(node: StandaloneNode, binary: string, version: string): void {
  const archive = `${node.elsewhere}/image-${version}.tar`
  // As a release has it.
  const files = createImageEntries(fs.readFileSync(binary), provideContainerRuntime().busybox, '')
  fs.writeFileSync(
    archive,
    createOciArchive(describeModekeepImage(version), [{ arch: process.arch as Architecture, files }]).archive,
  )
  importImages(archive)
  fs.rmSync(archive)
}

/**
 * Runs the pod of the rendered DaemonSet as a cluster would on this node, whose kubelet knows pods from files alone: there is
 * no account.
 * @param overlay the node's plugin directory is Flatcar's
 */
export function runDaemonSet(node: StandaloneNode, name: string, wishes: Wishes, overlay = 'flatcar'): Pod {
  const components = ['components/before-1.30', ...(wishes.components ?? [])]
  const resources = render(kustomization(`overlays/${overlay}`, { ...wishes, components }))
  const { metadata, spec } = one(resources, 'DaemonSet').spec.template
  const { serviceAccountName: _, ...rest } = spec
  const whole = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name, uid: name, namespace: 'kube-system' },
    spec: { ...rest, hostNetwork: true },
  }
  return node.giveAsItIs({ name, driver: 'modekeep', options: {} }, whole)
}

/** What a container of a pod in kube-system has said, over all of its starts. */
export function said({ uid }: Pod, container: string): string {
  const directory = `/var/log/pods/kube-system_${uid}-node_${uid}/${container}`
  if (!fs.existsSync(directory)) return ''
  return fs
    .readdirSync(directory)
    .map((file) => fs.readFileSync(`${directory}/${file}`, 'utf8'))
    .join('')
}

interface Spec {
  process: { capabilities?: Record<string, string[]>; noNewPrivileges?: boolean }
  root: { readonly?: boolean }
  linux: { seccomp?: object; maskedPaths?: string[] }
}

/** Returns containerd's configuration of the newest container of this name in a pod. @throws {Error} if there is none */
export function specOf({ uid }: Pod, container: string): Spec {
  const wanted = [`labels."io.kubernetes.pod.uid"==${uid}`, `labels."io.kubernetes.container.name"==${container}`]
  const [id] = ctr('containers', 'ls', '-q', wanted.join(',')).trim().split('\n')
  if (!id) throw new Error(`containerd has no container ${container} of ${uid}`)
  return JSON.parse(ctr('containers', 'info', '--spec', id))
}
