import { DEFAULT_MAP_RULES, type MapRule } from '../../../src/config/map-rule.ts'
import type { ContainerCloneRequest } from '../../../src/container/clone-request.ts'
import type { PodProcessGids } from '../../../src/frontends/nri/cri.ts'
import { type CloneDecision, decideContainerClones } from '../../../src/frontends/nri/decide-clones.ts'
import type { PodVolumes } from '../../../src/frontends/nri/pod-volumes.ts'
import type { Container, ContainerMount, PodSandbox } from '../../../src/frontends/nri/protocol.ts'

export const KUBELET = '/var/lib/kubelet'
export const UID = '0b7c1a52-8d0e-4b5b-9f5a-0c1d2e3f4a5b'
export const POD = `${KUBELET}/pods/${UID}`

export function podOf(annotations: Record<string, string> = {}): PodSandbox {
  return { id: 'sandbox', name: 'web-0', uid: UID, namespace: 'shop', annotations } as PodSandbox
}

export function mountOf(destination: string, source: string, options = ['rbind', 'rprivate', 'rw']): ContainerMount {
  return { destination, type: 'bind', source, options } as ContainerMount
}

export interface Shape {
  isInUserNamespace?: boolean
  user?: { uid: number; gid: number; additionalGids: number[] }
}

export function containerOf(mounts: ContainerMount[], { isInUserNamespace = false, user }: Shape = {}): Container {
  const types = ['pid', 'ipc', 'uts', 'mount', ...(isInUserNamespace ? ['user'] : [])]
  const linux = { namespaces: types.map((type) => ({ type, path: '' })) }
  return { id: 'c0ffee', podSandboxId: 'sandbox', name: 'app', state: 0, mounts, linux, user } as Container
}

/** What kubelet and a runtime mount into every container. */
export const USUAL: readonly ContainerMount[] = [
  {
    destination: '/proc',
    type: 'proc',
    source: 'proc',
    options: ['nosuid', 'noexec', 'nodev'],
  } as unknown as ContainerMount,
  { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: [] } as unknown as ContainerMount,
  mountOf('/etc/resolv.conf', '/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/sandbox/resolv.conf'),
  mountOf('/etc/hosts', `${POD}/etc-hosts`),
  mountOf('/dev/termination-log', `${POD}/containers/app/1a2b3c4d`),
  mountOf('/var/run/secrets/kubernetes.io/serviceaccount', `${POD}/volumes/kubernetes.io~projected/kube-api-access-x`),
]

export const SOURCES = {
  scratch: `${POD}/volumes/kubernetes.io~empty-dir/scratch`,
  claim: `${POD}/volumes/kubernetes.io~csi/pvc-1/mount`,
  disk: `${POD}/volumes/kubernetes.io~local-volume/disk`,
  nfs: `${POD}/volumes/kubernetes.io~nfs/share`,
  config: `${POD}/volumes/kubernetes.io~configmap/config`,
  own: `${POD}/volumes/modekeep~fs/own`,
  ownClaim: `${POD}/volumes/kubernetes.io~csi/own-pv/mount`,
} as const

export const VOLUMES: PodVolumes = {
  directory: POD,
  plugins: new Map([
    ['scratch', 'kubernetes.io~empty-dir'],
    ['pvc-1', 'kubernetes.io~csi'],
    ['disk', 'kubernetes.io~local-volume'],
    ['share', 'kubernetes.io~nfs'],
    ['config', 'kubernetes.io~configmap'],
    ['own', 'modekeep~fs'],
    ['own-pv', 'kubernetes.io~csi'],
  ]),
  drivers: new Map([
    ['pvc-1', 'ebs.csi.aws.com'],
    ['own-pv', 'modekeep.csi'],
  ]),
}

type Given = Shape & {
  map?: readonly MapRule[]
  annotations?: Record<string, string>
  volumes?: PodVolumes
  podGroups?: PodProcessGids
}

export function decisionOn(
  group: string | undefined,
  mounts: readonly ContainerMount[],
  { map = DEFAULT_MAP_RULES, annotations = {}, volumes = VOLUMES, podGroups, ...shape }: Given = {},
): CloneDecision {
  const all = { ...(group === undefined ? {} : { 'modekeep/group': group }), ...annotations }
  const node = { kubeletDir: KUBELET, map }
  return decideContainerClones(podOf(all), containerOf([...USUAL, ...mounts], shape), volumes, node, podGroups)
}

export function decided(...on: Parameters<typeof decisionOn>): ContainerCloneRequest | undefined {
  return decisionOn(...on).request
}
