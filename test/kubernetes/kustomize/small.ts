import * as fs from 'node:fs'
import { basename, join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { nameWithHash } from './config-map.ts'
import { patched } from './json-patch.ts'
import type { Resource } from './render.ts'

/**
 * Renders the part of kustomize that driver/kubernetes uses: resources, components, JSON patches, ConfigMaps of files,
 * images, namespace. Everything else in a kustomization is refused, so that it cannot be passed over.
 */
export function renderHere(directory: string): Resource[] {
  return named(accumulate(directory, []))
}

const KNOWN = ['apiVersion', 'kind', 'namespace', 'resources', 'components', 'patches', 'configMapGenerator', 'images']

function accumulate(directory: string, given: Resource[]): Resource[] {
  const kustomization = parse(fs.readFileSync(join(directory, 'kustomization.yaml'), 'utf8'), { strict: true })
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.includes(key))
  if (unknown.length > 0) throw new Error(`${directory}: the small renderer knows no ${unknown}`)
  const { resources = [], components = [], patches = [], configMapGenerator = [], images = [] } = kustomization
  let all = [...given, ...resources.flatMap((name: string) => resource(join(directory, name)))]
  for (const generator of configMapGenerator) all = generate(all, directory, generator, kustomization.namespace)
  for (const component of components) all = accumulate(join(directory, component), all)
  for (const { target, patch, ...other } of patches) {
    if (Object.keys(other).length > 0) throw new Error(`${directory}: a patch wants target and patch alone`)
    const operations = parse(patch)
    const matches = ({ kind, metadata }: Resource) =>
      (target.kind ?? kind) === kind && (target.name ?? metadata.name) === metadata.name
    if (!all.some(matches)) throw new Error(`${directory}: a patch has no target`)
    all = all.map((one) => (matches(one) ? patched(one, operations) : one))
  }
  for (const one of all) {
    if (kustomization.namespace !== undefined) one.metadata.namespace = kustomization.namespace
    for (const image of images) rename(one, image)
  }
  return all
}

function resource(path: string): Resource[] {
  if (fs.statSync(path).isDirectory()) return accumulate(path, [])
  return parseAllDocuments(fs.readFileSync(path, 'utf8')).map((document) => document.toJS())
}

interface Generator {
  name: string
  behavior?: string
  namespace?: string
  files: string[]
}

function generate(all: Resource[], directory: string, generator: Generator, namespace?: string): Resource[] {
  const data = Object.fromEntries(
    generator.files.map((file) => [basename(file), fs.readFileSync(join(directory, file), 'utf8')]),
  )
  const isIt = ({ kind, metadata }: Resource) => kind === 'ConfigMap' && metadata.name === generator.name
  if (generator.behavior === 'replace') {
    if (!all.some(isIt)) throw new Error(`${directory}: no ConfigMap ${generator.name} to replace`)
    return all.map((one) => (isIt(one) ? { ...one, data } : one))
  }
  const of = generator.namespace ?? namespace
  const metadata = { name: generator.name, ...(of === undefined ? {} : { namespace: of }) }
  return [...all, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }]
}

function rename(resource: Resource, { name, newName, newTag }: { name: string; newName?: string; newTag?: string }) {
  const pod = resource.spec?.template?.spec
  for (const container of [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]) {
    const [current, tag] = container.image.split(':')
    if (current === name) container.image = [newName ?? name, newTag ?? tag].filter(Boolean).join(':')
  }
}

/** ConfigMaps get their hash at the very end, and pods the new names. */
function named(all: Resource[]): Resource[] {
  const maps = all.filter(({ kind }) => kind === 'ConfigMap')
  const names = new Map(maps.map((map) => [map.metadata.name, nameWithHash(map.metadata.name, map.data)]))
  for (const map of maps) map.metadata.name = names.get(map.metadata.name)
  for (const { spec } of all) {
    for (const { configMap } of spec?.template?.spec?.volumes ?? [])
      if (configMap) configMap.name = names.get(configMap.name) ?? configMap.name
  }
  return all
}
