import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { daemonsOf } from '../../kubelet/cases/fuse.ts'
import { FSGROUP, look, makeFiles } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import { event, exec, gone, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'
import { killServers } from './restarts.ts'

const evicted: Case = {
  name: 'the end of pods: a drained node unmounts both volumes and restores the group, and a force-deleted pod leaves nothing',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/drained`, { file: 0o644 })
    const walk = { source, ownership: 'walk', restoreOnUnmount: 'true' }
    const other = makeFiles(`${cluster.volumes}/drained-csi`, { file: 0o644 })
    const uids: string[] = []
    for (const how of ['drained', 'forced']) {
      const volumes = [inline('flex', 'v', walk), inline('csi', 'w', { source: other })]
      await cluster.apply(pod(how, podSpec(volumes, FSGROUP)))
      uids.push((await running(cluster, how)).metadata.uid)
      assert.equal(look(source).get('file')?.group, FSGROUP)
      if (how === 'drained') {
        await cluster.kubectl('drain', 'node', '--ignore-daemonsets', '--force', '--timeout=90s')
        await cluster.kubectl('uncordon', 'node')
      } else await cluster.kubectl('delete', 'pod', how, '--force', '--grace-period=0')
      await gone(uids.at(-1) ?? '')
      await until('the group is back', () => look(source).get('file')?.group === 0)
    }
    return 'group 2000, and 0 again, twice'
  },
}

const SECRET = 'correct-horse-battery'

const secret: Case = {
  name: 'the end of a secret: it is in no log, event or record after any outcome of the mount',
  async run(cluster) {
    const source = 'bob@127.0.0.1:/srv/files'
    for (const door of ['flex', 'csi'] as const) {
      const name = `secret-${door}`
      const type = door === 'flex' ? { type: 'modekeep/fs' } : {}
      const metadata = { name, namespace: 'default' }
      await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, ...type, stringData: { password: SECRET } })
      const volume = inline(door, 'v', { source }, 'fuse.sshfs')
      if (door === 'flex') volume.flexVolume.secretRef = { name }
      else volume.csi.nodePublishSecretRef = { name }
      await cluster.apply(pod(name, podSpec([volume])))
      // No process listens there.
      await event(cluster, name, 'SetUp failed', 'sshfs')
    }
    const told = await cluster.kubectl('get', 'events', '-A', '-o', 'json')
    const texts = [told, ...textsBelow('/var/log', '/var/lib/modekeep', `${dirname(cluster.elsewhere)}/logs`)]
    for (const form of [SECRET, Buffer.from(SECRET).toString('base64')]) {
      assert(!texts.some((text) => text.includes(form)), `${form} is reported`)
    }
    await remove(cluster, 'secret-flex', 'secret-csi')
    return `not in ${texts.length} texts`
  },
}

/** The files' contents, without files that are deleted meanwhile, such as staging directories of repeated mounts. */
function textsBelow(...directories: readonly string[]): string[] {
  return directories.flatMap((directory) =>
    unlessGone(() => fs.readdirSync(directory, { withFileTypes: true }), []).flatMap((entry) => {
      const path = `${directory}/${entry.name}`
      if (entry.isDirectory()) return textsBelow(path)
      return entry.isFile() ? unlessGone(() => [fs.readFileSync(path, 'latin1')], []) : []
    }),
  )
}

/** ENOTCONN: a FUSE daemon has ended. */
function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look()
  } catch (error) {
    if (['ENOENT', 'ENOTCONN'].includes((error as NodeJS.ErrnoException).code ?? '')) return otherwise
    throw error
  }
}

const fuse: Case = {
  name: 'the end of a server: the daemon of a FUSE volume of CSI keeps running, and ends with its pod',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/served`, { file: 0o644 })
    await cluster.apply(pod('served', podSpec([inline('csi', 'v', { source }, 'fuse.bindfs')])))
    const { uid } = (await running(cluster, 'served')).metadata
    const before = daemonsOf(uid)
    await killServers(cluster)
    const [after, read] = [daemonsOf(uid), await exec(cluster, 'served', 'cat /data/v/file')]
    await remove(cluster, 'served')
    await until('its daemon has ended', () => daemonsOf(uid).length === 0)
    assert.equal(before.length, 1)
    assert.deepEqual([after, read], [before, 'file'])
    return 'the same daemon; gone with the pod'
  },
}

export const ENDS: readonly Case[] = [evicted, secret, fuse]
