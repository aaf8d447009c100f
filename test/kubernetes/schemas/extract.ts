import * as fs from 'node:fs'
import { resolve } from 'node:path'

// node test/kubernetes/schemas/extract.ts SWAGGER
// Takes from Kubernetes' api/openapi-spec/swagger.json what the manifests need, without descriptions. The file is in
// Debian's source package of Kubernetes, which test:kubelet fetches: apt-get source kubernetes.

const KINDS = [
  'io.k8s.api.apps.v1.DaemonSet',
  'io.k8s.api.apps.v1.Deployment',
  'io.k8s.api.apps.v1.StatefulSet',
  'io.k8s.api.core.v1.ConfigMap',
  'io.k8s.api.core.v1.PersistentVolume',
  'io.k8s.api.core.v1.PersistentVolumeClaim',
  'io.k8s.api.core.v1.Pod',
  'io.k8s.api.core.v1.Service',
  'io.k8s.api.core.v1.ServiceAccount',
  'io.k8s.api.rbac.v1.RoleBinding',
]
const KEPT = new Set(['$ref', 'additionalProperties', 'format', 'items', 'properties', 'required', 'type'])
const PREFIX = '#/definitions/'

// biome-ignore lint/suspicious/noExplicitAny: a part of any schema.
type Part = any

function bare(schema: Part): Part {
  const kept = Object.entries(schema).filter(([key]) => KEPT.has(key) || key === 'x-kubernetes-group-version-kind')
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (key === 'properties')
        return [key, Object.fromEntries(Object.entries(value as Part).map(([name, of]) => [name, bare(of)]))]
      return [key, key === 'items' || key === 'additionalProperties' ? bare(value) : value]
    }),
  )
}

const references = (schema: Part): string[] =>
  JSON.stringify(schema)
    .match(/"#\/definitions\/[^"]+"/g)
    ?.map((quoted) => JSON.parse(quoted).slice(PREFIX.length)) ?? []

const [source = ''] = process.argv.slice(2)
const { definitions } = JSON.parse(fs.readFileSync(source, 'utf8'))
const taken: Record<string, Part> = {}
for (const waiting = [...KINDS]; waiting.length > 0; ) {
  const name = waiting.pop() ?? ''
  if (name in taken) continue
  taken[name] = bare(definitions[name])
  waiting.push(...references(taken[name]))
}
const about = `Kubernetes 1.20.2, api/openapi-spec/swagger.json without descriptions. Copyright The Kubernetes Authors, Apache-2.0.`
const lines = Object.keys(taken)
  .sort()
  .map((name) => `${JSON.stringify(name)}: ${JSON.stringify(taken[name])}`)
fs.writeFileSync(
  resolve(import.meta.dirname, 'kubernetes.json'),
  `{ "about": ${JSON.stringify(about)}, "definitions": {\n${lines.join(',\n')}\n} }\n`,
)
