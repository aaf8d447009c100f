import { CelScalar, celEnv, celFunc, isCelError, isCelList, isCelMap, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { describe, expect, it } from 'vitest'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { claim, PODS, REFUSED, REPLACED, toPod, withFsGroup } from './any-volume-pods.ts'
import { type Resource, render } from './render.ts'
import { kustomization } from './tree.ts'

const escapeKey = celFunc('escapeKey', [CelScalar.STRING], CelScalar.STRING, (key) =>
  key.replaceAll('~', '~0').replaceAll('/', '~1'),
)
const environment = celEnv({ funcs: [...strings, escapeKey] })

/** Evaluates an expression of a policy as the API server does, whose integers are int. @throws the expression's error */
function evaluate(expression: string, object: unknown, variables = new Map<string, unknown>()): unknown {
  const value = plan(environment, parse(expression))({ object: toCel(object), variables: variables as never })
  if (isCelError(value)) throw value
  return value
}

/** Evaluates the variables of a policy in their order. */
function evaluateVariables({ spec }: Resource, object: unknown): Map<string, unknown> {
  const variables = new Map<string, unknown>()
  for (const { name, expression } of spec.variables ?? [])
    variables.set(name, evaluate(expression, object, new Map(variables)))
  return variables
}

/** Returns whether a policy applies to the pod. */
const matches = ({ spec }: Resource, object: unknown): boolean =>
  spec.matchConditions.every(({ expression }: { expression: string }) => evaluate(expression, object) === true)

/** Evaluates the JSON patch of a policy, in which each operation is a message of the API server's. */
function evaluatePatch(policy: Resource, object: unknown): object[] {
  const expression = policy.spec.mutations[0].jsonPatch.expression
    .replaceAll('JSONPatch{op: ', '{"op": ')
    .replaceAll(/, path: /g, ', "path": ')
    .replaceAll(/,\s+value: /g, ', "value": ')
    .replaceAll('jsonpatch.escapeKey', 'escapeKey')
  return fromCel(evaluate(expression, object, evaluateVariables(policy, object))) as object[]
}

/** Returns the messages with which a policy refuses the pod. */
function listRefusals(policy: Resource, object: unknown): string[] {
  const variables = evaluateVariables(policy, object)
  return policy.spec.validations.flatMap(({ expression, message, messageExpression }: Record<string, string>) =>
    evaluate(expression ?? '', object, variables) === true
      ? []
      : [message ?? evaluate(messageExpression ?? '', object, variables)],
  )
}

function fromCel(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (isCelList(value)) return [...value].map(fromCel)
  if (isCelMap(value)) return Object.fromEntries([...value].map(([key, field]) => [key, fromCel(field)]))
  return value
}

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
  let rendered: Resource[] | undefined
  const resources = skipIfUnavailable(() => {
    rendered ??= render(kustomization('overlays/default', { components: ['nri', `components/${component}`] }))
    return rendered.filter(({ metadata }) => metadata.name.startsWith('modekeep-any-volume-'))
  })
  const list = (kind: string) => resources().filter((resource) => resource.kind === kind)
  const policies = () => list('MutatingAdmissionPolicy')
  const validating = () => list('ValidatingAdmissionPolicy')
  const annotating = () => policies().filter(({ spec }) => spec.mutations[0].patchType === 'ApplyConfiguration')
  const replacing = () => policies().filter(({ spec }) => spec.mutations[0].patchType === 'JSONPatch')

  it('binds a policy to each value of the label of a namespace', () => {
    const bound = resources().flatMap(({ kind, spec }) =>
      kind === 'MutatingAdmissionPolicyBinding'
        ? [[spec.policyName, spec.matchResources.namespaceSelector.matchLabels]]
        : [],
    )
    expect(Object.fromEntries(bound)).toEqual({
      'modekeep-any-volume-required': { 'modekeep/any-volume': 'required' },
      'modekeep-any-volume-optional': { 'modekeep/any-volume': 'optional' },
      'modekeep-any-volume-instead-of-fsgroup': { 'modekeep/any-volume': 'instead-of-fsgroup' },
    })
    expect(new Set(policies().map((resource) => resource.apiVersion))).toEqual(new Set([apiVersion]))
  })

  it.each(PODS)('for a pod %s, the conditions of all policies give the expected result', (_title, pod, isAnnotated) => {
    const object = toPod(pod)
    const results = [...policies(), ...validating()].map((policy) => matches(policy, object))
    expect(results).toEqual([isAnnotated, isAnnotated, isAnnotated, isAnnotated])
  })

  it('the required policy writes the group, and the optional one also that the pod may start without it', () => {
    const object = toPod({ spec: withFsGroup(claim) })
    const annotations = annotating().map((policy) => [policy.metadata.name, readAnnotations(policy, object)])
    expect(Object.fromEntries(annotations)).toEqual({
      'modekeep-any-volume-required': { 'modekeep/group': '2000' },
      'modekeep-any-volume-optional': { 'modekeep/group': '2000', 'modekeep/group-optional': 'true' },
    })
  })

  it('the policies of instead-of-fsgroup decide by the same conditions and variables', () => {
    const [mutation, ...otherMutations] = replacing()
    const [validation, ...otherValidations] = validating()
    expect([otherMutations, otherValidations]).toEqual([[], []])
    expect(validation?.spec.matchConditions).toEqual(mutation?.spec.matchConditions)
    expect(mutation?.spec.variables.slice(0, validation?.spec.variables.length)).toEqual(validation?.spec.variables)
  })

  it('the refusal of instead-of-fsgroup is bound to its label, and is of version v1, which all these servers have', () => {
    const bindings = list('ValidatingAdmissionPolicyBinding')
    expect(bindings.map(({ apiVersion: version, spec }) => [version, spec])).toEqual([
      [
        'admissionregistration.k8s.io/v1',
        {
          policyName: 'modekeep-any-volume-instead-of-fsgroup',
          validationActions: ['Deny'],
          matchResources: { namespaceSelector: { matchLabels: { 'modekeep/any-volume': 'instead-of-fsgroup' } } },
        },
      ],
    ])
  })

  it.each(REPLACED)('instead-of-fsgroup moves the group of a pod %s, and does not refuse it', (_title, pod, patch) => {
    const object = toPod(pod)
    expect(replacing().map((policy) => evaluatePatch(policy, object))).toEqual([patch])
    expect(validating().flatMap((policy) => listRefusals(policy, object))).toEqual([])
  })

  it.each(REFUSED)('instead-of-fsgroup refuses a pod %s, and leaves its fsGroup in it', (_title, pod, reason) => {
    const object = toPod(pod)
    expect(replacing().map((policy) => evaluatePatch(policy, object))).toEqual([[]])
    expect(validating().flatMap((policy) => listRefusals(policy, object))).toEqual([expect.stringContaining(reason)])
  })
})
