import type { ContainerRuntime } from '../../scripts/fetch/packages.ts'

export const PROGRAMS = ['kubelet', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'] as const

/** Paths of all that a cluster runs. */
export interface Programs {
  runtime: ContainerRuntime
  /** What is put over the machine's own /usr, where the runtime is of another suite of Debian than the machine. */
  over: string | undefined
  etcd: string
  /** The directory of the plugins for the network of pods. */
  plugins: string
  kubernetes: Record<(typeof PROGRAMS)[number], string>
}
