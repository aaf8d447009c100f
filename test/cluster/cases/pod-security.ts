import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { FSGROUP, makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import { LEVELS, type Level, podSpecs, saidLevel } from '../../kubernetes/pod-security.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { Cluster } from '../plane/cluster.ts'
import { bind, byClaim, claimed, exec, inline, pod, podSpec, running } from '../plane/pods.ts'
import { releaseOf } from '../plane/release.ts'
import type { Case } from './case.ts'

const MANIFESTS = resolve(import.meta.dirname, '../../../driver/kubernetes')
const EXAMPLES = ['deployment', 'persistent-volume', 'statefulset', 'two-groups'].map((name) => `examples/${name}.yaml`)
/** It has the field appArmorProfile, which older API servers do not know. */
const SINCE_1_30 = 'device-plugin/example-pod.yaml'

const spaceOf = (level: Level) => `pods-${level}`

/** A namespace of each level, whose pods must keep it. */
const namespaces = (): Resource[] =>
  LEVELS.map((level) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: spaceOf(level), labels: { 'pod-security.kubernetes.io/enforce': level } },
  }))

async function makeNamespaces(cluster: Cluster): Promise<void> {
  await cluster.apply(...namespaces())
  for (const level of LEVELS) {
    const space = spaceOf(level)
    const hasAccount = async () => (await cluster.get('serviceaccount/default', space)) !== undefined
    await until(`pods in ${space} can have an account`, hasAccount)
  }
}

/** As `restricted` wants all else of a pod, so that its volumes alone decide. */
function strict(spec: Resource): Resource {
  return {
    ...spec,
    securityContext: { ...spec.securityContext, runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: spec.containers.map((container: Resource) => ({
      ...container,
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    })),
  }
}

const within = (namespace: string, resource: Resource): Resource => ({
  ...resource,
  metadata: { ...resource.metadata, namespace },
})

const forVolumes: Case = {
  name: 'Pod Security restricted denies an inline FlexVolume, and permits an inline CSI volume and claims of both drivers',
  needs: '1.25',
  async run(cluster) {
    const space = spaceOf('restricted')
    await makeNamespaces(cluster)
    const source = makeFiles(`${cluster.volumes}/restricted`, { file: 0o640 })
    const options = { source, ownership: 'walk' }
    const named = (name: string, volume: Resource) => within(space, pod(name, strict(podSpec([volume], FSGROUP))))
    const flex = named('flex', inline('flex', 'v', options))
    const why = await cluster.refusal(flex)
    assert.match(why ?? 'it is allowed', /violates PodSecurity "restricted:latest"/)
    assert.match(why ?? '', /flexVolume|restricted volume types/)
    for (const level of ['baseline', 'privileged'] as const) {
      assert.equal(await cluster.refusal(within(spaceOf(level), flex)), undefined)
    }
    const names = ['csi', 'strict-flex', 'strict-csi']
    await cluster.apply(named('csi', inline('csi', 'v', options)))
    for (const door of ['flex', 'csi'] as const) {
      const name = `strict-${door}`
      const [volume, claim] = claimed(door, name, options) as [Resource, Resource]
      volume.spec.claimRef.namespace = space
      await bind(cluster, name, [volume, within(space, claim)], space)
      await cluster.apply(named(name, byClaim('v', name)))
    }
    const seen = []
    for (const name of names) {
      await running(cluster, name, space)
      seen.push(await exec(cluster, name, 'cat /data/v/file', space))
    }
    await cluster.withdraw(...namespaces())
    await cluster.kubectl('delete', 'pv', 'strict-flex', 'strict-csi')
    assert.deepEqual(seen, ['file', 'file', 'file'])
    return `"${/volume.*$/s.exec(why ?? '')?.[0].trim() ?? why}"; ${names.join(', ')} read`
  },
}

const asWritten: Case = {
  name: 'Pod Security: the DaemonSet and each example need exactly the level that is written in their file',
  needs: '1.25',
  async run(cluster) {
    await makeNamespaces(cluster)
    const seen: Record<string, Level> = {}
    for (const example of cluster.atLeast('1.30') ? [...EXAMPLES, SINCE_1_30] : EXAMPLES) {
      const text = fs.readFileSync(`${MANIFESTS}/${example}`, 'utf8')
      const resources = parseAllDocuments(text).map((document) => document.toJS())
      seen[example] = saidLevel(text)
      assert.equal(await strictest(cluster, resources), seen[example], example)
    }
    const daemonSet = `${MANIFESTS}/base/daemonset.yaml`
    seen.DaemonSet = saidLevel(fs.readFileSync(daemonSet, 'utf8'))
    for (const components of [[], ['csi', 'device-plugin']]) {
      assert.equal(await strictest(cluster, releaseOf(cluster, '1', components)), seen.DaemonSet, components.join(' '))
    }
    await cluster.withdraw(...namespaces())
    return Object.entries(seen)
      .map(([what, level]) => `${what}: ${level}`)
      .join(', ')
  },
}

/** The first level whose namespace takes all pods of these resources. Only pods are denied: what makes them is warned of. */
async function strictest(cluster: Cluster, resources: readonly Resource[]): Promise<Level | undefined> {
  const refusals: string[] = []
  for (const level of LEVELS) {
    const said = []
    for (const { name, spec } of podSpecs(resources)) {
      // Its account and its priority are of the namespace that it is written for.
      const { serviceAccountName: _, priorityClassName: __, ...rest } = spec
      said.push(await cluster.refusal(within(spaceOf(level), pod(name, rest))))
    }
    const denied = said.filter((text) => text !== undefined)
    if (denied.length === 0) return level
    refusals.push(...denied)
    const other = denied.find((text) => !text.includes('violates PodSecurity'))
    if (other !== undefined) throw new Error(`not for its level: ${other}`)
  }
  throw new Error(refusals.join('\n'))
}

export const POD_SECURITY = [forVolumes, asWritten]
