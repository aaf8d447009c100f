import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { FSGROUP, makeFiles } from '../../kubelet/cases/tree.ts'
import { INSTALLED } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { mustBeUntouched } from '../../runtimes/cases/seen.ts'
import { ON_DISK } from '../../runtimes/node/disks.ts'
import { withForeignDriver } from '../foreign/driver.ts'
import type { Cluster } from '../plane/cluster.ts'
import { statusOfNode } from '../plane/mounts.ts'
import { byClaim, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import { podsOfRelease, rolledOut } from '../plane/release.ts'
import { asking, foreignClaim, keepsNoContainers, lacksPlugins, mustBeShown } from './any-volume.ts'
import type { Case } from './case.ts'

/** Takes the pod of the DaemonSet from the node, and brings it back. */
async function withoutPlugin(cluster: Cluster, work: () => Promise<void>): Promise<void> {
  const patch = (op: 'add' | 'remove') => {
    const value = op === 'add' ? { value: 'nowhere' } : {}
    const change = JSON.stringify([{ op, path: '/spec/template/spec/nodeSelector/modekeep', ...value }])
    return cluster.kubectl('patch', 'daemonset', 'modekeep', '-n', 'kube-system', '--type', 'json', '-p', change)
  }
  await patch('add')
  await until('the plugin is away', async () => (await podsOfRelease(cluster)).length === 0)
  await work().finally(() => patch('remove'))
  await rolledOut(cluster)
}

const away: Case = {
  name: 'any volume: while the plugin is down containers keep their group and a new one starts without; status reports it later, and the next one has the group',
  lacks: lacksPlugins,
  run: (cluster) =>
    withForeignDriver(cluster, async (driver) => {
      const bound = await foreignClaim(cluster, driver, 'away')
      const start = async (name: string) => {
        await cluster.apply(asking(name, '2000', [byClaim('v', 'away')], [2000]))
        await running(cluster, name)
      }
      const stat = 'stat -c %g /data/v /data/v/sub/two && cat /data/v/one'
      await start('before')
      await mustBeShown(cluster, 'before', '/data/v', 2000)
      await withoutPlugin(cluster, async () => {
        await start('meanwhile')
        const without = await exec(cluster, 'meanwhile', 'stat -c %g /data/v; cat /data/v/one || true')
        assert.match(without, new RegExp(`^${ON_DISK}\\n.*Permission denied$`))
        assert.equal(await exec(cluster, 'before', stat), '2000\n2000\none')
      })
      const states = async () =>
        Object.fromEntries(
          (await statusOfNode()).containers.map(({ pod: of, state, reason }) => [of, { state, reason }]),
        )
      const isTold = async () => (await states())['default/meanwhile']?.state === 'without'
      await until('status says which container does without', isTold)
      const { 'default/before': kept, 'default/meanwhile': lacking } = await states()
      assert.deepEqual(kept, { state: 'mapped', reason: '' })
      assert.equal(await exec(cluster, 'before', stat), '2000\n2000\none')
      // As a Deployment does it for one that is deleted.
      await remove(cluster, 'meanwhile')
      await start('meanwhile')
      await mustBeShown(cluster, 'meanwhile', '/data/v', 2000)
      mustBeUntouched(driver.staged.get('away') ?? '')
      await remove(cluster, 'before', 'meanwhile')
      await cluster.withdraw(...bound)
      await keepsNoContainers()
      return `${ON_DISK} meanwhile: "${lacking?.reason}"; then 2000`
    }),
}

/** Where --logs finds it. */
const transcript = ({ elsewhere }: Cluster) => `${dirname(elsewhere)}/logs/three-doors.txt`

const threeDoors: Case = {
  name: 'any volume: modekeep status shows the mounts of FlexVolume and CSI and the container of another driver together',
  lacks: lacksPlugins,
  run: (cluster) =>
    withForeignDriver(cluster, async (driver) => {
      const bound = await foreignClaim(cluster, driver, 'data')
      const [own, other] = ['cart', 'media'].map((name) => makeFiles(`${cluster.volumes}/${name}`, { file: 0o644 }))
      assert(own && other)
      await cluster.apply(
        pod('cart', podSpec([inline('flex', 'data', { source: own, ownership: 'walk' })], FSGROUP)),
        pod('media', podSpec([inline('csi', 'data', { source: other })])),
        asking('orders', '3000', [byClaim('data', 'data')], [3000]),
      )
      for (const name of ['cart', 'media', 'orders']) await running(cluster, name)
      await until('the container has started, as the plugin knows', async () =>
        (await statusOfNode()).containers.every(({ state }) => state === 'mapped'),
      )
      const said = execFileSync(INSTALLED, ['status'], { encoding: 'utf8' })
      fs.writeFileSync(transcript(cluster), `$ modekeep status\n${said}`)
      for (const row of [
        `default/cart +${own} +${FSGROUP} +walk .*healthy`,
        `default/media +${other} +- +none .*healthy`,
        `default/orders/main +data +${ON_DISK} +3000 .*mapped`,
      ]) {
        assert.match(said, new RegExp(`^${row}$`, 'm'))
      }
      await remove(cluster, 'cart', 'media', 'orders')
      await cluster.withdraw(...bound)
      await keepsNoContainers()
      return 'walk and none, healthy; 1500 shown as 3000, mapped'
    }),
}

export const ANY_VOLUME_AWAY: readonly Case[] = [away, threeDoors]
