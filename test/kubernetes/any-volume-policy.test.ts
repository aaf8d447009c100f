import { CelScalar, celEnv, celFunc, isCelError, isCelList, isCelMap, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
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

/** Kubernetes writes these defaults before it calls the policies. */
const tokenVolume = {
  name: 'kube-api-access-x',
  projected: { defaultMode: 0o644, sources: [{ serviceAccountToken: { path: 'token' } }] },
}
const withVolumes = (...volumes: object[]) => ({ spec: withFsGroup(claim, tokenVolume, ...volumes) })

const toPod = ({ metadata = {}, spec }: { metadata?: object; spec: object }) => ({
  metadata,
  spec: { containers: [{ name: 'c' }], ...spec },
})

const add = (path: string, value: unknown) => ({ op: 'add', path, value })
const ADD_ANNOTATIONS = add('/metadata/annotations', {})
const ADD_GROUP = add('/metadata/annotations/modekeep~1group', '2000')
const ADD_PLUGIN = add('/metadata/annotations/required-plugins.noderesource.dev', '["modekeep"]')
const REMOVE_FS_GROUP = { op: 'remove', path: '/spec/securityContext/fsGroup' }
const addGroups = (...groups: number[]) => add('/spec/securityContext/supplementalGroups', groups)

const requiring = (plugins: string) => ({
  metadata: { annotations: { 'required-plugins.noderesource.dev': plugins } },
  ...withVolumes(),
})
const mounting = (mount: object, list = 'containers') => {
  const { spec } = withVolumes({ name: 'h', hostPath: { path: '/srv' } })
  return { spec: { ...spec, [list]: [{ name: 'c', volumeMounts: [{ name: 'h', mountPath: '/h', ...mount }] }] } }
}

type TestPod = Parameters<typeof toPod>[0]

const REPLACED: readonly (readonly [title: string, pod: TestPod, patch: object[]])[] = [
  ['without annotations', withVolumes(), [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP]],
  [
    'with an annotation',
    { metadata: { annotations: { a: 'b' } }, ...withVolumes() },
    [ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
  [
    'with another supplemental group',
    { spec: { securityContext: { fsGroup: 2000, supplementalGroups: [7] }, volumes: [claim] } },
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(7, 2000), REMOVE_FS_GROUP],
  ],
  [
    'with its group in supplementalGroups',
    { spec: { securityContext: { fsGroup: 2000, supplementalGroups: [2000] }, volumes: [claim] } },
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, REMOVE_FS_GROUP],
  ],
  ['that requires modekeep', requiring('["other","modekeep"]'), [ADD_GROUP, addGroups(2000), REMOVE_FS_GROUP]],
  [
    'with a Secret that others may read, a hostPath and an image',
    withVolumes(
      { name: 's', secret: { defaultMode: 0o444, items: [{ key: 'k', path: 'k', mode: 0o644 }] } },
      { name: 'h', hostPath: { path: '/srv' } },
      { name: 'i', image: { reference: 'r' } },
    ),
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
  [
    'with the whole of a hostPath',
    mounting({}),
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
]

const closed = [{ key: 'k', path: 'k', mode: 0o440 }]
const REFUSED: readonly (readonly [title: string, pod: TestPod, reason: string])[] = [
  ['with a Secret of 0400', withVolumes({ name: 's', secret: { defaultMode: 0o400 } }), 'files of s:'],
  ['with a Secret, one file of which is 0440', withVolumes({ name: 's', secret: { items: closed } }), 'files of s:'],
  ['with a ConfigMap of 0640', withVolumes({ name: 'c', configMap: { defaultMode: 0o640 } }), 'files of c:'],
  [
    'with a ConfigMap, one file of which is 0440',
    withVolumes({ name: 'c', configMap: { items: closed } }),
    'files of c:',
  ],
  [
    'with a downward API volume of 0400',
    withVolumes({ name: 'd', downwardAPI: { defaultMode: 0o400 } }),
    'files of d:',
  ],
  [
    'with a downward API volume, one file of which is 0440',
    withVolumes({ name: 'd', downwardAPI: { items: closed } }),
    'files of d:',
  ],
  [
    'with a token volume of 0400',
    withVolumes({ ...tokenVolume, name: 't', projected: { ...tokenVolume.projected, defaultMode: 0o400 } }),
    'files of t:',
  ],
  ...['secret', 'configMap', 'downwardAPI'].map(
    (source) =>
      [
        `with a projected ${source}, one file of which is 0440`,
        withVolumes({ name: 'p', projected: { sources: [{ [source]: { items: closed } }] } }),
        'files of p:',
      ] as const,
  ),
  [
    'with two such volumes',
    withVolumes({ name: 'a', secret: { defaultMode: 0 } }, { name: 'b', secret: { defaultMode: 0 } }),
    'files of a, b:',
  ],
  ['with an NFS volume', withVolumes({ name: 'n', nfs: { server: 's', path: '/' } }), 'no volume such as n:'],
  [
    "with an inline volume of modekeep's CSI driver",
    withVolumes({ name: 'm', csi: { driver: 'modekeep.csi' } }),
    'no volume such as m:',
  ],
  [
    "with an inline volume of modekeep's FlexVolume driver",
    withVolumes({ name: 'm', flexVolume: { driver: 'modekeep/fs' } }),
    'no volume such as m:',
  ],
  ['with a subPath of a hostPath', mounting({ subPath: 'a' }), 'subPath of the hostPath h:'],
  ['with a subPathExpr of a hostPath', mounting({ subPathExpr: '$(A)' }), 'subPath of the hostPath h:'],
  [
    'with a subPath of a hostPath in an init container',
    { spec: { ...mounting({ subPath: 'a' }, 'initContainers').spec, containers: [{ name: 'c' }] } },
    'subPath of the hostPath h:',
  ],
  ['that requires another plugin alone', requiring('["other"]'), 'add "modekeep" to its list'],
]

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
    const object = { metadata: {}, ...pod }
    const results = [...policies(), ...validating()].map((policy) => matches(policy, object))
    expect(results).toEqual([isAnnotated, isAnnotated, isAnnotated, isAnnotated])
  })

  it('the required policy writes the group, and the optional one also that the pod may start without it', () => {
    const object = { metadata: {}, spec: withFsGroup(claim) }
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
