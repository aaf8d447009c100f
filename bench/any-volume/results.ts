/** How a pod gets its group. */
export const WAYS = ['modekeep nri', "kubelet's fsGroup", 'no group'] as const
export type Way = (typeof WAYS)[number]

/** Milliseconds of each round, of one way on a volume of so many files. */
export interface PodTimes {
  way: Way
  files: number
  /** From kubelet's mount of the volume for the pod to the running container. */
  total: number[]
  /** Of that kubelet's walk, where there is one. */
  walk: number[]
}

/** Milliseconds. */
export interface Measured {
  times: PodTimes[]
  /** Of each question for a pod's groups over CRI. */
  groupsAsked: number[]
}

/** Of a whole run. */
export interface AnyVolume extends Measured {
  machine: Record<string, string>
  containerd: string
}
