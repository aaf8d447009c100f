import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { makeFiles } from '../../kubelet/cases/tree.ts'
import { INSTALLED } from '../../kubelet/node/drivers.ts'
import { hasMissedDriver } from '../../kubelet/node/kubelet-log.ts'
import { until } from '../../kubelet/node/until.ts'
import { keepsNothingOf, mountPoint, mounts, statusOfNode } from '../plane/mounts.ts'
import { exec, gone, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

/** Of kubelet's garbage collection (a minute), and of what goes before. */
const PATIENCE = 240

const leftMount: Case = {
  name: 'the mount of a pod that was deleted while kubelet had no driver is reported as orphaned, and heal unmounts and restores it',
  async run(cluster) {
    const source = makeFiles(`${cluster.volumes}/left`, { file: 0o640 })
    const other = makeFiles(`${cluster.volumes}/stays`, { file: 0o640 })
    const asked = { ownership: 'walk', restoreOnUnmount: 'true' }
    await cluster.apply(
      pod('left', podSpec([inline('flex', 'v', { ...asked, source })], 2000)),
      pod('stays', podSpec([inline('flex', 'v', { ...asked, source: other })], 2000)),
    )
    const [left, stays]: string[] = [
      (await running(cluster, 'left')).metadata.uid,
      (await running(cluster, 'stays')).metadata.uid,
    ]
    assert(left !== undefined && stays !== undefined)
    const before = mounts('flex', stays)
    assert.equal(fs.statSync(`${source}/file`).gid, 2000)

    const { kubelet } = cluster.daemons
    const driver = dirname(INSTALLED)
    // Kubelet passes over names that begin so.
    const away = `${dirname(driver)}/.modekeep-away`
    await kubelet.stop('SIGTERM')
    fs.renameSync(driver, away)
    await cluster.kubectl('delete', 'pod', 'left', '--force', '--grace-period=0')
    // Without the driver. The API server knows the pod no more, so kubelet ends it.
    await cluster.restart('kubelet')
    // Kubelet unmounts it by itself if the driver is there by then.
    await until('kubelet tried to unmount it without the driver', () => hasMissedDriver(kubelet.log(), left))
    fs.renameSync(away, driver)

    // As long as its logs are there kubelet may not know yet.
    const told = new Set<string>()
    const wronged: string[] = []
    const directory = mountPoint('flex', left)
    const started = performance.now()
    let heals = 0
    await until(
      'heal has unmounted it',
      async () => {
        for (const mount of (await statusOfNode()).mounts) {
          if (mount.directory === directory) told.add(mount.state)
          else if (mount.state === 'orphaned') wronged.push(`${mount.directory}: ${mount.reason}`)
        }
        // The healer of the DaemonSet looks as well, at the latest every five minutes.
        if (told.has('orphaned')) {
          heals++
          await promisify(execFile)(INSTALLED, ['heal'])
        }
        return mounts('flex', left).length === 0
      },
      PATIENCE,
    )
    const seconds = Math.round((performance.now() - started) / 1000)
    await gone(left)
    await keepsNothingOf(left)
    const restored = fs.statSync(`${source}/file`).gid
    const after = mounts('flex', stays)
    const seen = await exec(cluster, 'stays', 'cat /data/v/file')
    await remove(cluster, 'stays')
    assert.deepEqual(wronged, [])
    assert.equal(restored, 0)
    assert.deepEqual(after, before)
    assert.equal(seen, 'file')
    assert(told.has('orphaned'), [...told].join())
    return `orphaned, unmounted ${seconds} s after the driver was back (${heals} heals), put back; the other pod kept its mount`
  },
}

export const LEFT = [leftMount]
