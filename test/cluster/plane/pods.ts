import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { IMAGE } from '../../kubelet/node/images.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from './cluster.ts'

export type Door = 'flex' | 'csi'

/** A volume of modekeep's in a pod, by its options. */
export function inline(door: Door, name: string, options: Record<string, string>, fsType?: string): Resource {
  const type = fsType === undefined ? {} : { fsType }
  return door === 'flex'
    ? { name, flexVolume: { driver: 'modekeep/fs', ...type, options } }
    : { name, csi: { driver: 'modekeep.csi', ...type, volumeAttributes: options } }
}

/** A PersistentVolume of modekeep's and the claim for it alone, both of this name. */
export function claimed(door: Door, name: string, options: Record<string, string>): Resource[] {
  return volumeAndClaim(
    name,
    door === 'flex'
      ? { flexVolume: { driver: 'modekeep/fs', options } }
      : { csi: { driver: 'modekeep.csi', volumeHandle: name, volumeAttributes: options } },
  )
}

/** A PersistentVolume and the claim for it alone, both of this name. @param source and what else its spec has of it */
export function volumeAndClaim(name: string, source: Resource, namespace = 'default'): [Resource, Resource] {
  const spec = { accessModes: ['ReadWriteMany'], storageClassName: '' }
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: { ...spec, capacity: { storage: '1Gi' }, claimRef: { namespace, name }, ...source },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: { ...spec, volumeName: name, resources: { requests: { storage: '1Gi' } } },
    },
  ]
}

/** Applies a volume and its claim, and waits for their bond: the scheduler lets a pod that comes before it wait for long. */
export async function bind(
  { apply, get }: Cluster,
  name: string,
  both: readonly Resource[],
  namespace = 'default',
): Promise<void> {
  await apply(...both)
  await until(`${name} is bound`, async () => (await get(`pvc/${name}`, namespace))?.status?.phase === 'Bound')
}

export const byClaim = (name: string, claimName: string): Resource => ({ name, persistentVolumeClaim: { claimName } })

/** What a pod or a template is made of: a container that sleeps, with its volumes at /data/NAME. */
export function podSpec(volumes: readonly Resource[], fsGroup?: number, more: Resource = {}): Resource {
  return {
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    // There is no name server.
    dnsPolicy: 'Default',
    ...(fsGroup === undefined ? {} : { securityContext: { fsGroup, runAsUser: 1000, runAsGroup: 1000 } }),
    containers: [
      {
        name: 'main',
        image: IMAGE,
        imagePullPolicy: 'Never',
        command: ['/bin/sh', '-c', 'exec sleep 1000000'],
        volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/data/${name}` })),
      },
    ],
    volumes,
    ...more,
  }
}

export const pod = (name: string, spec: Resource): Resource => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec,
})

/** Waits until a pod is ready. */
export async function running({ get }: Cluster, name: string, namespace = 'default'): Promise<Resource> {
  let found: Resource | undefined
  await until(
    `${name} is ready`,
    async () => {
      found = await get(`pod/${name}`, namespace)
      const conditions: Resource[] = found?.status.conditions ?? []
      if (conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return true
      throw new Error(JSON.stringify(found?.status.containerStatuses ?? conditions))
    },
    90,
  )
  return found as Resource
}

/**
 * Returns what a command in a pod's first container writes; the error's message has what it wrote if it fails. A kubelet that
 * was just restarted does not know its pods yet, and refuses the command before it runs.
 */
export async function exec({ kubectl }: Cluster, name: string, script: string, namespace = 'default'): Promise<string> {
  const attempts = 30
  for (let attempt = 1; ; attempt++) {
    try {
      return (await kubectl('exec', '-n', namespace, name, '--', '/bin/sh', '-c', `(${script}) 2>&1`)).trim()
    } catch (error) {
      const isUnknown = (error as Error).message.includes('unable to upgrade connection: pod does not exist')
      if (!isUnknown || attempt === attempts) throw error
      await setTimeout(1000)
    }
  }
}

/** Waits for an event about a pod that has all these patterns in its message. Returns the message. */
export async function event({ kubectl }: Cluster, name: string, ...patterns: (string | RegExp)[]): Promise<string> {
  let found: string | undefined
  await until(
    `${name} has an event with ${patterns.join(' … ')}`,
    async () => {
      const field = `involvedObject.name=${name}`
      const { items } = JSON.parse(await kubectl('get', 'events', '--field-selector', field, '-o', 'json'))
      const messages = items.map(({ message }: Resource) => message as string)
      found = messages.find((text: string) => patterns.every((pattern) => text.search(pattern) >= 0))
      if (found === undefined) throw new Error(messages.join(' | '))
      return true
    },
    90,
  )
  return found as string
}

/** Deletes pods and waits until nothing of them is left in kubelet's directory. */
export async function remove({ kubectl, get }: Cluster, ...names: string[]): Promise<void> {
  const pods = await Promise.all(names.map((name) => get(`pod/${name}`)))
  await kubectl('delete', 'pod', '--wait', '--timeout=120s', ...names)
  for (const found of pods) await gone(found?.metadata.uid)
}

/** Waits until kubelet has removed all of a pod. */
export const gone = (uid: string) =>
  until(`pod ${uid} leaves nothing`, () => !fs.existsSync(`${KUBELETS_ROOT}/pods/${uid}`))
