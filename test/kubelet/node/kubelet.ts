import * as fs from 'node:fs'
import type { World } from '../world.ts'
import { SOCKET } from './containerd.ts'
import { Daemon } from './daemon.ts'
import { PAUSE } from './images.ts'

export const KUBELETS_ROOT = '/var/lib/kubelet'
export const PLUGINS = `${KUBELETS_ROOT}/volumeplugins`
const PORT = 10255

const arguments_ = (manifests: string, place: string) => [
  `--pod-manifest-path=${manifests}`,
  '--file-check-frequency=2s',
  `--volume-plugin-dir=${PLUGINS}`,
  '--container-runtime=remote',
  `--container-runtime-endpoint=unix://${SOCKET}`,
  `--pod-infra-container-image=${PAUSE}`,
  '--hostname-override=node',
  '--address=127.0.0.1',
  `--read-only-port=${PORT}`,
  '--healthz-port=0',
  `--cert-dir=${place}/certificates`,
  '--fail-swap-on=false',
  '--cgroups-per-qos=false',
  '--enforce-node-allocatable=',
  '--cgroup-driver=cgroupfs',
  '--image-gc-high-threshold=100',
  '--eviction-hard=',
  // What /stats/summary says of volumes is as old as this.
  '--volume-stats-agg-period=10s',
  '--v=4',
]

/** The kubelet of the node, without an API server: its pods are files in `manifests`. */
export function makeKubelet({ place, kubelet }: World, logs: string, manifests: string): Daemon {
  fs.mkdirSync(manifests, { recursive: true })
  fs.mkdirSync(PLUGINS, { recursive: true })
  // By its own name, by which the installer knows it.
  const program = `${place}/kubelet`
  fs.rmSync(program, { force: true })
  fs.symlinkSync(kubelet, program)
  return new Daemon('kubelet', logs, [program, ...arguments_(manifests, place)], process.env)
}

interface Ended {
  reason?: string
  message?: string
}

export interface PodStatus {
  metadata: { name: string; uid: string }
  status: {
    phase?: string
    containerStatuses?: {
      ready: boolean
      restartCount: number
      containerID?: string
      state: { running?: object; waiting?: Ended; terminated?: Ended }
    }[]
  }
}

/** What the kubelet says of its pods. */
export async function podStatuses(): Promise<PodStatus[]> {
  const { items } = (await ask('/pods')) as { items: PodStatus[] | null }
  return items ?? []
}

export interface VolumeStats {
  name: string
  usedBytes?: number
  capacityBytes?: number
  inodesUsed?: number
}

/** What the kubelet's summary has measured of the volumes of a pod. */
export async function volumeStats(uid: string): Promise<VolumeStats[]> {
  const { pods } = (await ask('/stats/summary')) as { pods: { podRef: { uid: string }; volume?: VolumeStats[] }[] }
  return pods.find(({ podRef }) => podRef.uid === uid)?.volume ?? []
}

async function ask(path: string): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${PORT}${path}`, { signal: AbortSignal.timeout(30_000) })
  if (!response.ok) throw new Error(`kubelet answers ${response.status} to ${path}`)
  return response.json()
}
