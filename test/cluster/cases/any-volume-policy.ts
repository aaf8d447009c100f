import assert from 'node:assert/strict'
import { until } from '../../kubelet/node/until.ts'
import { claim, PODS, REFUSED, REPLACED, toPod, withFsGroup } from '../../kubernetes/any-volume-pods.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { releaseOf } from '../plane/release.ts'
import type { Case } from './case.ts'

const VALUES = ['required', 'optional', 'instead-of-fsgroup'] as const
type Value = (typeof VALUES)[number]

const namespaceOf = (value: Value) => `any-volume-${value}`
const GROUP = 'modekeep/group'

/** The pod as the API server would store it. Rejects with its refusal. */
async function admit(cluster: Cluster, value: Value, pod: Resource): Promise<Resource> {
  const { metadata, spec } = toPod(pod as Parameters<typeof toPod>[0])
  const named = { ...metadata, name: 'tried', namespace: namespaceOf(value) }
  return await cluster.admit({ apiVersion: 'v1', kind: 'Pod', metadata: named, spec })
}

const policy: Case = {
  name: 'the component any-volume: pods of labelled namespaces are annotated, have their fsGroup moved, or are refused, as its table says',
  needs: '1.36',
  async run(cluster) {
    const policies = releaseOf(cluster, '1', ['nri', 'components/any-volume']).filter(({ kind }: Resource) =>
      /AdmissionPolicy(Binding)?$/.test(kind),
    )
    const namespaces = VALUES.map((value) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespaceOf(value), labels: { 'modekeep/any-volume': value } },
    }))
    await cluster.apply(...policies, ...namespaces)
    try {
      for (const value of VALUES) {
        // The API server reads policies, and accounts are made, a while later.
        await until(`${value} is in force`, async () => {
          const { metadata } = await admit(cluster, value, { spec: withFsGroup(claim) })
          return metadata.annotations?.[GROUP] === '2000'
        })
      }
      for (const value of ['required', 'optional'] as const) {
        for (const [title, pod, isAnnotated] of PODS) {
          const { metadata, spec } = await admit(cluster, value, pod)
          const own = pod.metadata?.annotations?.[GROUP]
          assert.equal(metadata.annotations?.[GROUP], isAnnotated ? '2000' : own, `${value}: ${title}`)
          const optional = isAnnotated && value === 'optional' ? 'true' : undefined
          assert.equal(metadata.annotations?.['modekeep/group-optional'], optional, `${value}: ${title}`)
          assert.equal(spec.securityContext?.fsGroup, pod.spec.securityContext?.fsGroup, `${value}: ${title}`)
        }
      }
      for (const [title, pod] of REPLACED) {
        const { metadata, spec } = await admit(cluster, 'instead-of-fsgroup', pod)
        const { fsGroup, supplementalGroups } = spec.securityContext
        assert.equal(metadata.annotations?.[GROUP], '2000', title)
        assert.match(metadata.annotations?.['required-plugins.noderesource.dev'], /"modekeep"/, title)
        const groups = new Set([...(pod.spec.securityContext.supplementalGroups ?? []), 2000])
        assert.deepEqual([fsGroup, supplementalGroups], [undefined, [...groups]], title)
      }
      for (const [title, pod, reason] of REFUSED) {
        await assert.rejects(
          admit(cluster, 'instead-of-fsgroup', pod),
          (error: Error) => error.message.includes(reason),
          title,
        )
      }
      return `${PODS.length} pods by two labels, ${REPLACED.length} with their fsGroup moved, ${REFUSED.length} refused`
    } finally {
      await cluster.withdraw(...policies, ...namespaces)
    }
  },
}

const admitted: Case = {
  name: 'the pods of the table of the component any-volume are valid without its policies',
  async run(cluster) {
    // An older API server drops the fields that it does not know, and then finds no kind of volume.
    const pods = [...PODS, ...REPLACED, ...REFUSED]
      .map(([, pod]) => toPod(pod))
      .filter((pod) => cluster.atLeast('1.36') || !/"(ephemeral|image)":{/.test(JSON.stringify(pod)))
    const named = pods.map(({ metadata, spec }, at) => {
      return {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, name: `tried-${at}`, namespace: 'default' },
        spec,
      }
    })
    assert.equal(await cluster.refusal(...named), undefined)
    return `${pods.length} pods`
  },
}

export const ANY_VOLUME_POLICY = [admitted, policy]
