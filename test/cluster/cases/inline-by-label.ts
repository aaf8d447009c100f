import assert from 'node:assert/strict'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { bind, byClaim, claimed, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { releaseOf } from '../plane/release.ts'
import type { Case } from './case.ts'

const LABEL = 'modekeep/inline'
const DOORS = ['flex', 'csi'] as const

const policy: Case = {
  name: 'the component inline-by-label: inline volumes of both drivers only in labelled namespaces, claims everywhere, and older pods continue',
  needs: '1.30',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/by-label`, { file: 0o644 })
    const named = (door: 'flex' | 'csi', name: string) => pod(name, podSpec([inline(door, 'v', { source })]))
    await cluster.apply(named('flex', 'before-policy'))
    await running(cluster, 'before-policy')
    const added = releaseOf(cluster, '1', ['csi', 'components/inline-by-label']).filter(({ kind }: Resource) =>
      kind.startsWith('ValidatingAdmissionPolicy'),
    )
    assert.equal(added.length, 2)
    await cluster.apply(...added)
    const label = (value: string) => cluster.kubectl('label', 'namespace', 'default', `${LABEL}${value}`)
    try {
      // The API server reads policies anew after a while.
      await until('the policy is in force', async () => (await cluster.refusal(named('csi', 'denied'))) !== undefined)
      const said = []
      for (const door of DOORS) said.push(await cluster.refusal(named(door, 'denied')))
      for (const text of said) assert.match(text ?? 'it is allowed', /claim a PersistentVolume/)
      await cluster.kubectl('label', 'pod', 'before-policy', 'seen=yes')
      for (const door of DOORS) {
        const name = `by-claim-${door}`
        await bind(cluster, name, claimed(door, name, { source }))
        await cluster.apply(pod(name, podSpec([byClaim('v', name)])))
        await running(cluster, name)
      }
      await label('=allowed')
      for (const door of DOORS) {
        const allowed = async () => (await cluster.refusal(named(door, 'allowed'))) === undefined
        await until(`${door} is allowed`, allowed)
      }
      await cluster.apply(named('csi', 'labelled'))
      await running(cluster, 'labelled')
      assert.equal(await exec(cluster, 'labelled', 'cat /data/v/file'), 'file')
      await remove(cluster, 'before-policy', 'by-claim-flex', 'by-claim-csi', 'labelled')
      return `"${/modekeep-inline.*$/s.exec(said[0] ?? '')?.[0].trim() ?? said[0]}"`
    } finally {
      await label('-')
      await cluster.withdraw(...added)
      await until(
        'the policy is not in force',
        async () => (await cluster.refusal(named('csi', 'later'))) === undefined,
      )
    }
  },
}

export const INLINE_BY_LABEL = [policy]
