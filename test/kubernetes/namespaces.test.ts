import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { type Resource, render as renderByKubectl } from './render.ts'
import { COMPONENTS, kustomization } from './tree.ts'

const FOLDER = resolve(import.meta.dirname, '../../driver/kubernetes')
const OVERLAYS = fs.readdirSync(join(FOLDER, 'overlays')).sort()
/** Kinds without a namespace: https://kubernetes.io/docs/reference/kubernetes-api/ */
const CLUSTER_KINDS = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'CSIDriver',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
])

const render = skipIfUnavailable(renderByKubectl)
const ALL_COMPONENTS = [
  ...COMPONENTS,
  ['components/inline-by-label'],
  ['components/any-volume'],
  ['components/any-volume-v1beta1'],
]
const listRenderings = (overlays: readonly string[]) =>
  overlays.flatMap((overlay) => ALL_COMPONENTS.map((list) => [overlay, list.join(' and ') || 'none', list] as const))

/** Each object that kubectl would create in its own current namespace, and each reference to another namespace. */
function strayIn(resources: readonly Resource[], namespace: string): string[] {
  return resources.flatMap(({ kind, metadata, spec, subjects = [] }) => [
    ...(CLUSTER_KINDS.has(kind) || metadata.namespace === namespace
      ? []
      : [`${kind} ${metadata.name} in ${metadata.namespace}`]),
    ...subjects
      .filter((subject: Resource) => subject.kind === 'ServiceAccount' && subject.namespace !== namespace)
      .map((subject: Resource) => `${kind} ${metadata.name} names an account of ${subject.namespace}`),
    ...(kind === 'PodMonitor' && spec.namespaceSelector !== undefined
      ? [`${kind} ${metadata.name} selects namespaces by itself`]
      : []),
  ])
}

describe('the namespace of rendered objects', () => {
  it.each(listRenderings(OVERLAYS))(
    'every object of overlay %s is in kube-system with components: %s',
    (overlay, _, components) => {
      expect(strayIn(render(kustomization(`overlays/${overlay}`, { components })), 'kube-system')).toEqual([])
    },
  )

  // OpenShift's overlay alone has an object of its own that names a namespace.
  it.each(listRenderings(['default', 'openshift']))(
    'every object of overlay %s is in the configured namespace with components: %s',
    (overlay, _, components) => {
      const directory = kustomization(`overlays/${overlay}`, { components })
      const file = join(directory, 'kustomization.yaml')
      const [written] = parseAllDocuments(fs.readFileSync(file, 'utf8'))
      fs.writeFileSync(file, stringify({ ...written?.toJS(), namespace: 'storage' }))
      expect(strayIn(render(directory), 'storage')).toEqual([])
    },
  )

  it('every component in the directory is in a tested set of components', () => {
    const components = fs.readdirSync(join(FOLDER, 'components')).map((name) => `components/${name}`)
    expect(components.filter((name) => !ALL_COMPONENTS.some((list) => list.includes(name)))).toEqual([])
  })
})
