import { celEnv, parse, plan } from '@bufbuild/cel'
import { describe, expect, it } from 'vitest'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { type Resource, render } from './render.ts'
import { kustomization } from './tree.ts'

const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
const withFsGroup = (...volumes: object[]) => ({ securityContext: { fsGroup: 2000 }, volumes })

/** A pod as the API server has it when it calls the policies, and whether it is annotated. */
const PODS: readonly (readonly [title: string, pod: { metadata?: object; spec: object }, isAnnotated: boolean])[] = [
  ['with an fsGroup and a claim', { spec: withFsGroup(claim) }, true],
  ['with an fsGroup and an ephemeral claim', { spec: withFsGroup({ name: 'a', ephemeral: {} }) }, true],
  ['with an fsGroup and an inline CSI volume', { spec: withFsGroup({ name: 'a', csi: { driver: 'd' } }) }, true],
  ['with an fsGroup and an emptyDir', { spec: withFsGroup({ name: 'a', emptyDir: {} }) }, true],
  ['with other annotations', { metadata: { annotations: { a: 'b' } }, spec: withFsGroup(claim) }, true],
  [
    'with the annotation',
    { metadata: { annotations: { 'modekeep/group': 'data=1' } }, spec: withFsGroup(claim) },
    false,
  ],
  ['without an fsGroup', { spec: { securityContext: { runAsUser: 1 }, volumes: [claim] } }, false],
  ['without a security context', { spec: { volumes: [claim] } }, false],
  ['without volumes', { spec: { securityContext: { fsGroup: 2000 } } }, false],
  [
    'with a hostPath and a Secret alone',
    { spec: withFsGroup({ name: 'h', hostPath: {} }, { name: 's', secret: {} }) },
    false,
  ],
]

const environment = celEnv()

/** Evaluates an expression of a policy as the API server does, whose integers are int. */
const evaluate = (expression: string, object: unknown) =>
  plan(environment, parse(expression))({ object: toCel(object) })

function toCel(value: unknown): never {
  if (typeof value === 'number') return BigInt(value) as never
  if (Array.isArray(value)) return value.map(toCel) as never
  if (typeof value !== 'object' || value === null) return value as never
  return new Map(Object.entries(value).map(([key, field]) => [key, toCel(field)])) as never
}

/** The annotations that a policy writes: the map of its ApplyConfiguration, without the types that the API server adds. */
function readAnnotations(policy: Resource, object: unknown): Record<string, string> {
  const { expression } = policy.spec.mutations[0].applyConfiguration
  const [, map = ''] = /^Object\{ metadata: Object\.metadata\{ annotations: (\{.*\}) \} \}$/.exec(expression) ?? []
  const annotations = evaluate(map, object) as Iterable<[string, string]>
  return Object.fromEntries(annotations)
}

describe.each([
  ['any-volume', 'admissionregistration.k8s.io/v1'],
  ['any-volume-v1beta1', 'admissionregistration.k8s.io/v1beta1'],
])('the component %s', (component, apiVersion) => {
  const resources = skipIfUnavailable(() =>
    render(kustomization('overlays/default', { components: ['nri', `components/${component}`] })).filter(({ kind }) =>
      kind.startsWith('MutatingAdmissionPolicy'),
    ),
  )
  const policies = () => resources().filter(({ kind }) => kind === 'MutatingAdmissionPolicy')

  it('binds a policy to each value of the label of a namespace', () => {
    const bound = resources().flatMap(({ kind, spec }) =>
      kind === 'MutatingAdmissionPolicyBinding'
        ? [[spec.policyName, spec.matchResources.namespaceSelector.matchLabels]]
        : [],
    )
    expect(Object.fromEntries(bound)).toEqual({
      'modekeep-any-volume-required': { 'modekeep/any-volume': 'required' },
      'modekeep-any-volume-optional': { 'modekeep/any-volume': 'optional' },
    })
    expect(new Set(resources().map((resource) => resource.apiVersion))).toEqual(new Set([apiVersion]))
  })

  it.each(PODS)(
    'for a pod %s, the conditions of both policies give the expected result',
    (_title, pod, isAnnotated) => {
      const object = { metadata: {}, ...pod }
      const results = policies().map(({ spec }) =>
        spec.matchConditions.every(({ expression }: { expression: string }) => evaluate(expression, object) === true),
      )
      expect(results).toEqual([isAnnotated, isAnnotated])
    },
  )

  it('the required policy writes the group, and the optional one also that the pod may start without it', () => {
    const object = { metadata: {}, spec: withFsGroup(claim) }
    const annotations = policies().map((policy) => [policy.metadata.name, readAnnotations(policy, object)])
    expect(Object.fromEntries(annotations)).toEqual({
      'modekeep-any-volume-required': { 'modekeep/group': '2000' },
      'modekeep-any-volume-optional': { 'modekeep/group': '2000', 'modekeep/group-optional': 'true' },
    })
  })
})
