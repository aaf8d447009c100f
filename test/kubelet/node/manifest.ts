import { IMAGE } from './images.ts'

export const DRIVERS = { modekeep: 'modekeep/fs', naive: 'control/naive' } as const
export type DriverName = keyof typeof DRIVERS

export interface PodWish {
  /** Also the pod's uid. */
  name: string
  driver: DriverName
  /** The volume's options for modekeep; the naive driver knows `source` alone. */
  options: Record<string, string>
  fsGroup?: number
  fsType?: string
  readOnly?: boolean
  /** What the container runs before it sleeps, its volume at /data: each word as it is. */
  first?: string
  /** More of the container's description, over what is given here. */
  container?: Record<string, unknown>
  /** More volumes. */
  volumes?: Record<string, unknown>[]
  user?: number
}

/** The name of the volume in each pod. */
export const VOLUME = 'v'

/** A pod's manifest: one container that sleeps, on the node's network, killed without waiting. */
export function manifest({ name, driver, options, fsGroup, fsType, readOnly, ...more }: PodWish): object {
  const flexVolume = {
    driver: DRIVERS[driver],
    ...(fsType === undefined ? {} : { fsType }),
    ...(readOnly ? { readOnly } : {}),
    options,
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      securityContext: {
        ...(fsGroup === undefined ? {} : { fsGroup }),
        ...(more.user === undefined ? {} : { runAsUser: more.user, runAsGroup: more.user }),
      },
      containers: [
        {
          name: 'main',
          image: IMAGE,
          imagePullPolicy: 'Never',
          command: ['/bin/sh', '-c', `${more.first ?? ':'}; exec sleep 1000000`],
          volumeMounts: [{ name: VOLUME, mountPath: '/data', ...(readOnly ? { readOnly } : {}) }],
          ...more.container,
        },
      ],
      volumes: [{ name: VOLUME, flexVolume }, ...(more.volumes ?? [])],
    },
  }
}
