import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { ctr } from '../../kubelet/node/containerd.ts'
import { IMAGE } from '../../kubelet/node/images.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { NODE } from './certificates.ts'
import type { Cluster } from './cluster.ts'

const EXAMPLES = resolve(import.meta.dirname, '../../../driver/kubernetes/examples')

/** Shell scripts that write to the volumes as an image's program does, by the image. */
type StandIns = Readonly<Record<string, string>>

/**
 * Reads an example of driver/kubernetes for this cluster, which has no registry: busybox is tagged with the name of each image.
 * The node's name, the directory of sources and `standIns` are all that differs from the file, and pods end at once.
 */
export function readExample({ volumes }: Cluster, file: string, standIns: StandIns = {}): Resource[] {
  const text = fs
    .readFileSync(`${EXAMPLES}/${file}.yaml`, 'utf8')
    .replaceAll('node-1', NODE)
    .replaceAll('/srv/volumes/', `${volumes}/`)
  const resources = parseAllDocuments(text).map((document) => document.toJS() as Resource)
  for (const { kind, spec } of resources) {
    const podSpec: Resource | undefined = kind === 'Pod' ? spec : spec?.template?.spec
    if (podSpec === undefined) continue
    podSpec.terminationGracePeriodSeconds = 0
    for (const container of podSpec.initContainers ?? []) replaceProgram(container, standIns, '')
    for (const container of podSpec.containers) replaceProgram(container, standIns, '; exec sleep 1000000')
  }
  return resources
}

function replaceProgram(container: Resource, standIns: StandIns, end: string): void {
  tagImage(container.image)
  const script = standIns[container.image]
  if (script === undefined) return
  container.command = ['/bin/sh', '-ec', `${script}${end}`]
  delete container.args
}

/** Gives the node busybox by the name of an image, as if it came from a registry. */
function tagImage(name: string): void {
  const parts = name.split('/').length
  const reference = parts === 1 ? `docker.io/library/${name}` : parts === 2 ? `docker.io/${name}` : name
  if (!ctr('images', 'ls', '-q').split('\n').includes(reference)) ctr('images', 'tag', IMAGE, reference)
}
