import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import type { Resource } from '../../kubernetes/render.ts'
import { GROUP, mustBeUntouched, mustHaveNoClones } from '../../runtimes/cases/seen.ts'
import { fill, ON_DISK } from '../../runtimes/node/disks.ts'
import { type ForeignDriver, withForeignDriver } from '../foreign/driver.ts'
import { NODE } from '../plane/certificates.ts'
import type { Cluster } from '../plane/cluster.ts'
import { readExample } from '../plane/examples.ts'
import { statusOfNode } from '../plane/mounts.ts'
import { bind, byClaim, event, exec, gone, pod, podSpec, remove, running, volumeAndClaim } from '../plane/pods.ts'
import type { Case } from './case.ts'
import { lacksUserNamespaces, NEEDS_USER_NAMESPACES } from './user-namespaces.ts'

export const lacksPlugins = ({ asksPlugins, runtime: { containerd } }: Cluster): string | undefined =>
  asksPlugins ? undefined : `needs containerd 1.7, there is ${containerd}`

/** A pod whose volumes are to be shown to a group of its processes, by an annotation. */
export function asking(name: string, annotation: string | undefined, volumes: Resource[], groups: number[]): Resource {
  const securityContext = { runAsUser: 1000, runAsGroup: 1000, supplementalGroups: groups }
  const { metadata, ...rest } = pod(name, podSpec(volumes, undefined, { securityContext }))
  return { ...rest, metadata: { ...metadata, annotations: annotation === undefined ? {} : { [GROUP]: annotation } } }
}

/** A claim of the foreign driver, with files of ON_DISK. */
export async function foreignClaim(cluster: Cluster, driver: ForeignDriver, name: string): Promise<Resource[]> {
  const both = volumeAndClaim(name, driver.volume(name))
  await bind(cluster, name, both)
  return both
}

/** In a container of group `group`, by its volume at `path`: it is the group's, and can be read and written. */
export async function mustBeShown(
  cluster: Cluster,
  name: string,
  path: string,
  group: number,
  namespace?: string,
): Promise<void> {
  const files = ['', '/one', '/sub', '/sub/two'].map((file) => `${path}${file}`).join(' ')
  const script = `stat -c %g ${files} | sort -u && cat ${path}/one && echo new >${path}/sub/of-${name} && stat -c %g ${path}/sub/of-${name}`
  assert.equal(await exec(cluster, name, script, namespace), `${group}\none\n${group}`, name)
}

/** What no pod may have left: clones on the node, and records of containers. */
export async function keepsNoContainers(): Promise<void> {
  await mustHaveNoClones()
  assert.deepEqual((await statusOfNode()).containers, [])
}

const claimOf = ({ spec }: Resource): string => spec.template.spec.volumes[0].persistentVolumeClaim.claimName

/** They run at the same time, on claims of another CSI driver. */
const examples = (what: string, files: readonly string[], more?: Pick<Case, 'needs' | 'lacks'>): Case => ({
  name: `any volume: ${what} on claims of another CSI driver read and write with their group, and nothing changes on disk`,
  lacks: lacksPlugins,
  ...more,
  run: (cluster) =>
    withForeignDriver(cluster, async (driver) => {
      const deployments = files.flatMap((file) => readExample(cluster, file))
      const claims = [...new Set(deployments.map(claimOf))]
      const bound = []
      for (const claim of claims) bound.push(...(await foreignClaim(cluster, driver, claim)))
      await cluster.apply(...deployments)
      const uids: string[] = []
      const seen: string[] = []
      for (const { metadata, spec } of deployments) {
        await cluster.kubectl('rollout', 'status', `deployment/${metadata.name}`, '--timeout=90s')
        const { securityContext, hostUsers, containers } = spec.template.spec
        const { supplementalGroups, fsGroup } = securityContext
        const [group = fsGroup] = supplementalGroups ?? []
        const [of] = await podsOf(cluster, metadata.name)
        assert(of)
        await mustBeShown(cluster, of.metadata.name, containers[0].volumeMounts[0].mountPath, group)
        const map = await exec(cluster, of.metadata.name, 'cat /proc/self/uid_map')
        assert.equal(/^0 +0 /.test(map), hostUsers !== false, map)
        uids.push(of.metadata.uid)
        seen.push(`${metadata.name} by ${fsGroup === undefined ? 'supplementalGroups' : 'fsGroup'} ${group}`)
      }
      for (const claim of claims) mustBeUntouched(driver.staged.get(claim) ?? '')
      await mustHaveNoClones()
      const { containers } = await statusOfNode()
      assert.deepEqual(
        containers.map(({ onDisk, state }) => [onDisk, state]),
        uids.map(() => [ON_DISK, 'mapped']),
      )
      await cluster.withdraw(...deployments)
      for (const uid of uids) await gone(uid)
      await cluster.withdraw(...bound)
      await keepsNoContainers()
      return `${seen.join(', ')}; ${ON_DISK} on disk`
    }),
})

async function podsOf(cluster: Cluster, name: string): Promise<Resource[]> {
  const found = await cluster.kubectl('get', 'pods', '-l', `app.kubernetes.io/name=${name}`, '-o', 'json')
  return JSON.parse(found).items
}

const FILES = ['any-volume', 'any-volume-fsgroup']
const forAll = examples('the examples with supplementalGroups and with an fsGroup', FILES)
const forUserNamespaces = examples('the example with hostUsers: false', ['any-volume-user-namespace'], {
  needs: NEEDS_USER_NAMESPACES,
  lacks: lacksUserNamespaces,
})

const ofTheNode: Case = {
  name: 'any volume: a local PersistentVolume and an emptyDir have a group each; without the annotation the pod sees the group on disk and cannot write',
  lacks: lacksPlugins,
  async run(cluster) {
    const path = `${cluster.volumes}/local`
    fs.mkdirSync(path)
    fill(path)
    const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [NODE] }] }]
    const nodeAffinity = { required: { nodeSelectorTerms: terms } }
    const bound = volumeAndClaim('local', { local: { path }, nodeAffinity })
    await bind(cluster, 'local', bound)
    const volumes = [byClaim('v', 'local'), { name: 'scratch', emptyDir: {} }]
    await cluster.apply(
      asking('local-asks', 'local=2000,scratch=3000', volumes, [2000, 3000]),
      asking('local-plain', undefined, volumes, [2000, 3000]),
    )
    for (const name of ['local-asks', 'local-plain']) await running(cluster, name)
    await mustBeShown(cluster, 'local-asks', '/data/v', 2000)
    assert.equal(await exec(cluster, 'local-asks', 'stat -c %g /data/scratch'), '3000')
    const plain = 'stat -c %g /data/v /data/scratch; echo >/data/v/new || true'
    assert.match(await exec(cluster, 'local-plain', plain), new RegExp(`^${ON_DISK}\\n0\\n.*Permission denied$`, 's'))
    mustBeUntouched(path)
    await remove(cluster, 'local-asks', 'local-plain')
    await cluster.withdraw(...bound)
    await keepsNoContainers()
    return `2000 and 3000, beside ${ON_DISK} and 0`
  },
}

const refused: Case = {
  name: 'any volume: a refused annotation is reported with the remedy in kubectl describe, no container is created and nothing remains',
  lacks: lacksPlugins,
  async run(cluster) {
    const volumes = [
      { name: 'scratch', emptyDir: {} },
      { name: 'of-node', hostPath: { path: cluster.volumes } },
    ]
    await cluster.apply(
      asking('typing-error', 'scrath=2000', volumes, [2000]),
      asking('no-rule', '/data/of-node=2000', volumes, [2000]),
    )
    await event(cluster, 'typing-error', 'scrath')
    await event(cluster, 'no-rule', '"map"')
    const told = []
    for (const [name, whole] of [
      [
        'typing-error',
        /annotation modekeep\/group is "scrath=2000", but the pod has no volume "scrath" that kubelet knows by this name: write "scratch" or /,
      ],
      ['no-rule', /annotation modekeep\/group is "\/data\/of-node=2000", but .*: .*"map"/],
    ] as const) {
      const described = await cluster.kubectl('describe', 'pod', name)
      assert.match(described, whole)
      assert.match(described, /State: +Waiting/)
      const line = described.split('\n').find((text) => whole.test(text)) ?? ''
      told.push(/annotation modekeep.*$/.exec(line)?.[0])
    }
    await remove(cluster, 'typing-error', 'no-rule')
    await keepsNoContainers()
    return told.map((text) => `"${text}"`).join(' and ')
  },
}

export const ANY_VOLUME: readonly Case[] = [forAll, forUserNamespaces, ofTheNode, refused]
