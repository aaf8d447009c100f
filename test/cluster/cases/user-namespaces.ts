import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { FSGROUP, look, makeFiles, modes, SIX, SIX_MODES } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Cluster } from '../plane/cluster.ts'
import { mountPoint, statusOfNode } from '../plane/mounts.ts'
import { type Door, event, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { isAtLeast } from '../plane/version.ts'
import type { Case } from './case.ts'

export const NEEDS_USER_NAMESPACES = '1.33'
const DOORS = ['flex', 'csi'] as const

/** kubernetes.io, "Use a User Namespace With a Pod": containerd 2.0, runc 1.2; what is mapped for idmap needs Linux 6.3. */
export const lacksUserNamespaces = ({ runtime: { containerd, runc } }: Cluster): string | undefined => {
  if (!isAtLeast(containerd, '2.0')) return `needs containerd 2.0, there is ${containerd}`
  return isAtLeast(runc, '1.2') ? undefined : `needs runc 1.2, there is ${runc}`
}

const withNamespace = (door: Door, name: string, options: Record<string, string>) =>
  pod(name, podSpec([inline(door, 'v', options)], FSGROUP, { hostUsers: false }))

/** Where the ids of the node begin for the pod's root: 0 would be the node's own. */
const firstId = async (cluster: Cluster, name: string) =>
  Number((await exec(cluster, name, 'cat /proc/self/uid_map')).trim().split(/\s+/)[1])

const statusOf = async (door: Door, uid: string) =>
  (await statusOfNode()).mounts.find(({ directory }) => directory === mountPoint(door, uid))

const auto: Case = {
  name: 'hostUsers: false with ownership auto: the pod runs through each driver, mapped by the NRI plugin or walked without it',
  needs: NEEDS_USER_NAMESPACES,
  lacks: lacksUserNamespaces,
  async run(cluster) {
    const seen = []
    for (const door of DOORS) {
      const name = `users-auto-${door}`
      const source = makeFiles(`${cluster.volumes}/${name}`, SIX)
      // A volume of a group of the system that users of the node can reach is walked instead.
      for (const file of ['.', ...Object.keys(SIX)]) fs.chownSync(`${source}/${file}`, 0, 1500)
      await cluster.apply(withNamespace(door, name, { source, ownership: 'auto' }))
      const { uid } = (await running(cluster, name)).metadata
      assert(await firstId(cluster, name), `${name} has no user namespace`)
      assert.equal(await exec(cluster, name, 'id -G && cat /data/v/test5'), `1000 ${FSGROUP}\ntest5`)
      const found = await statusOf(door, uid)
      assert.deepEqual([found?.ownership, found?.state], [cluster.asksPlugins ? 'idmap' : 'walk', 'healthy'])
      assert.deepEqual(modes(look(source)), SIX_MODES)
      seen.push(`${door}: ${found?.ownership}`)
      await remove(cluster, name)
    }
    return seen.join(', ')
  },
}

const idmap: Case = {
  name: 'hostUsers: false with ownership idmap and no NRI plugin: event and status report why no container starts, and the pod is deleted without leftovers',
  needs: NEEDS_USER_NAMESPACES,
  lacks: (cluster) =>
    lacksUserNamespaces(cluster) ?? (cluster.asksPlugins ? 'is of a node without the NRI plugin' : undefined),
  async run(cluster) {
    const seen = []
    for (const door of DOORS) {
      const name = `users-idmap-${door}`
      const source = makeFiles(`${cluster.volumes}/${name}`, SIX)
      fs.chownSync(source, 0, 1500)
      const before = look(source)
      await cluster.apply(withNamespace(door, name, { source, ownership: 'idmap' }))
      // runc's own words, unless a repeated call of kubelet's is refused by modekeep first.
      const said = await event(cluster, name, /MOUNT_ATTR_IDMAP|has a user namespace/)
      const { uid } = (await cluster.get(`pod/${name}`))?.metadata ?? {}
      await until('status is not healthy and says why', async () => {
        const found = await statusOf(door, uid)
        if (found?.state !== 'healthy' && /user namespace/.test(found?.reason ?? '')) return true
        throw new Error(JSON.stringify(found))
      })
      await remove(cluster, name)
      assert.deepEqual(look(source), before)
      seen.push(`${door}: "${said}"`)
    }
    return seen.join(', ')
  },
}

const others: Case = {
  name: 'hostUsers: false with ownership none and walk runs through each driver as with host users',
  needs: NEEDS_USER_NAMESPACES,
  lacks: lacksUserNamespaces,
  async run(cluster) {
    const names = []
    for (const door of DOORS) {
      for (const ownership of ['none', 'walk']) {
        const name = `users-${ownership}-${door}`
        const source = makeFiles(`${cluster.volumes}/${name}`, { file: ownership === 'none' ? 0o644 : 0o640 })
        await cluster.apply(withNamespace(door, name, { source, ownership }))
        await running(cluster, name)
        assert(await firstId(cluster, name), `${name} has no user namespace`)
        assert.equal(await exec(cluster, name, 'cat /data/v/file'), 'file')
        names.push(name)
      }
    }
    await remove(cluster, ...names)
    return `${names.length} pods read`
  },
}

export const USER_NAMESPACES = [auto, idmap, others]
