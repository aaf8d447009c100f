import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { KUSTOMIZE, type Resource, renderByKustomize } from './kustomize/render.ts'
import { renderHere } from './kustomize/small.ts'
import { COMPONENTS, kustomization } from './tree.ts'

const place = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-renderer-')))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

const FILES = {
  'base/kustomization.yaml': `
namespace: system
resources: [set.yaml]
configMapGenerator: [{ name: settings, files: [a.txt, b.txt] }]
`,
  'base/a.txt': 'one\n',
  'base/b.txt': '<&>"\n',
  'base/set.yaml': `
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent }
spec:
  template:
    metadata: { annotations: { example/a: x } }
    spec:
      containers: [{ name: main, image: "agent:1" }]
      volumes: [{ name: settings, configMap: { name: settings } }]
`,
  'part/kustomization.yaml': `
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: { kind: DaemonSet, name: agent }
    patch: |-
      - { op: replace, path: /spec/template/metadata/annotations/example~1a, value: new }
      - { op: add, path: /spec/template/spec/containers/-, value: { name: second, image: "agent:1" } }
      - { op: remove, path: /spec/template/spec/containers/0/name }
`,
  'top/kustomization.yaml': `
resources: [../base]
components: [../part]
images: [{ name: agent, newName: example.org/agent, newTag: "2" }]
`,
}
for (const [path, text] of Object.entries(FILES)) {
  fs.mkdirSync(join(place, dirname(path)), { recursive: true })
  fs.writeFileSync(join(place, path), text)
}

/** What kustomize 5.5.0 makes of them. */
const EXPECTED = [
  {
    apiVersion: 'v1',
    data: { 'a.txt': 'one\n', 'b.txt': '<&>"\n' },
    kind: 'ConfigMap',
    metadata: { name: 'settings-79gd4tdgfc', namespace: 'system' },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'system' },
    spec: {
      template: {
        metadata: { annotations: { 'example/a': 'new' } },
        spec: {
          containers: [{ image: 'example.org/agent:2' }, { image: 'example.org/agent:2', name: 'second' }],
          volumes: [{ configMap: { name: 'settings-79gd4tdgfc' }, name: 'settings' }],
        },
      },
    },
  },
]

const sorted = (resources: Resource[]) => resources.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))

describe('the small renderer', () => {
  it('gives what kustomize is known to give', () => {
    expect(sorted(renderHere(join(place, 'top')))).toEqual(EXPECTED)
  })

  it.each([
    ['secretGenerator: []', 'knows no secretGenerator'],
    ['patches: [{ target: { kind: Pod }, patch: "[]" }]', 'a patch has no target'],
    ['patches: [{ path: patch.yaml, target: { kind: Pod } }]', 'a patch wants target and patch alone'],
    ['configMapGenerator: [{ name: other, behavior: replace, files: [] }]', 'no ConfigMap other to replace'],
  ])('refuses what it cannot do: %s', (text, message) => {
    const directory = fs.mkdtempSync(join(place, 'refused-'))
    fs.writeFileSync(join(directory, 'kustomization.yaml'), `resources: [../base]\n${text}\n`)
    expect(() => renderHere(directory)).toThrow(message)
  })
})

if (KUSTOMIZE === undefined)
  console.log('the small renderer is not compared: there is no kustomize and no kubectl here')
else {
  describe('kustomize itself', () => {
    const trees = [
      ...fs
        .readdirSync(join(import.meta.dirname, '../../driver/kubernetes/overlays'))
        .map((name) => kustomization(`overlays/${name}`, {})),
      ...COMPONENTS.map((components) => kustomization('overlays/gke', { components, config: '{"a": "<&>"}' })),
      kustomization('overlays/rke2', { image: { newName: 'example.org/modekeep', newTag: '9' } }),
      join(place, 'top'),
    ]
    it.each(trees)('gives the same: %s', (tree) => {
      expect(sorted(renderByKustomize(tree))).toEqual(sorted(renderHere(tree)))
    })
  })
}
