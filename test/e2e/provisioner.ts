import * as fs from 'node:fs'
import type { Cluster } from '../cluster/plane/cluster.ts'
import type { Resource } from '../kubernetes/render.ts'

export const DRIVER = 'modekeep.csi'
const EVERY_MS = 500
const BY = 'pv.kubernetes.io/provisioned-by'

/**
 * modekeep provisions nothing. For the tests this gives each pending claim of a class of the driver's a directory and a
 * PersistentVolume, and removes both when the claim is gone, if the class says so.
 * @returns ends it. @throws {Error} what went wrong meanwhile
 */
export function startProvisioner(cluster: Cluster): () => Promise<void> {
  let isEnding = false
  const troubles = new Set<string>()
  const looping = (async () => {
    while (!isEnding) {
      await look(cluster).catch((error) => troubles.add(error instanceof Error ? error.message : String(error)))
      await new Promise((done) => setTimeout(done, EVERY_MS))
    }
  })()
  return async () => {
    isEnding = true
    await looping
    // A claim may go between the look at it and what follows.
    for (const trouble of troubles) console.log(`the provisioner met: ${trouble.split('\n').at(-1)}`)
  }
}

async function look({ kubectl, apply, volumes }: Cluster): Promise<void> {
  const { items } = JSON.parse(await kubectl('get', 'storageclasses,pvc,pv', '-A', '-o', 'json')) as {
    items: Resource[]
  }
  const of = (kind: string) => items.filter((item) => item.kind === kind)
  const existing = new Set(of('PersistentVolume').map(({ metadata }) => metadata.name))
  const classes = new Map(of('StorageClass').map((item) => [item.metadata.name, item]))
  for (const claim of of('PersistentVolumeClaim')) {
    const found = classes.get(claim.spec.storageClassName)
    const name = `pvc-${claim.metadata.uid}`
    if (found?.provisioner !== DRIVER || claim.status.phase !== 'Pending' || existing.has(name)) continue
    if (claim.metadata.deletionTimestamp !== undefined || claim.spec.volumeName || !mayBind(found, claim)) continue
    const source = `${volumes}/${name}`
    fs.mkdirSync(source, { recursive: true })
    fs.chmodSync(source, 0o777)
    await apply(volumeFor(claim, found, name, source))
  }
  for (const { metadata, spec, status } of of('PersistentVolume')) {
    if (metadata.annotations?.[BY] !== DRIVER || metadata.deletionTimestamp !== undefined) continue
    if (status.phase !== 'Released' || spec.persistentVolumeReclaimPolicy !== 'Delete') continue
    await kubectl('delete', 'pv', metadata.name, '--wait=false')
    fs.rmSync(`${volumes}/${metadata.name}`, { recursive: true, force: true })
  }
}

/** With late binding the scheduler chooses a node first. */
const mayBind = ({ volumeBindingMode }: Resource, { metadata }: Resource) =>
  volumeBindingMode !== 'WaitForFirstConsumer' ||
  metadata.annotations?.['volume.kubernetes.io/selected-node'] !== undefined

function volumeFor({ metadata, spec }: Resource, found: Resource, name: string, source: string): Resource {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [BY]: DRIVER } },
    spec: {
      accessModes: spec.accessModes,
      capacity: { storage: spec.resources.requests.storage },
      storageClassName: spec.storageClassName,
      persistentVolumeReclaimPolicy: found.reclaimPolicy,
      mountOptions: found.mountOptions ?? [],
      volumeMode: spec.volumeMode,
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
      },
      csi: { driver: DRIVER, volumeHandle: name, volumeAttributes: { source } },
    },
  }
}
