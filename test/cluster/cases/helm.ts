import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { writeChart } from '../../../scripts/chart/files.ts'
import { SIZE } from '../../helpers/size.ts'
import { until } from '../../kubelet/node/until.ts'
import { applyRelease, podsOfRelease, withdrawRelease } from '../plane/release.ts'
import type { Case } from './case.ts'

const NAMESPACE = ['--namespace', 'kube-system']
const INSTALLED_CONFIG = '/etc/modekeep/config.json'

const lifecycle: Case = {
  name: 'the chart is installed, upgraded with another configuration, rolled back and uninstalled by helm',
  // It replaces the DaemonSet's pods five times, and the cluster is what the gate waits for.
  lacks: () => (SIZE === 'long' ? 'npm run test:cluster runs it, as does MODEKEEP_TEST_SIZE=full' : undefined),
  async run(cluster) {
    const chart = `${cluster.elsewhere}/chart/modekeep`
    const values = `${cluster.elsewhere}/values.json`
    writeChart(chart)
    const write = (logLevel: string) =>
      fs.writeFileSync(
        values,
        JSON.stringify({
          distribution: 'flatcar',
          image: { tag: '1' },
          config: { allow: [{ sources: [`${cluster.volumes}/*`] }], logLevel },
        }),
      )
    const rolledOut = async (logLevel: string) => {
      await cluster.kubectl('rollout', 'status', 'daemonset/modekeep', ...NAMESPACE, '--timeout=90s')
      assert.equal(JSON.parse(fs.readFileSync(INSTALLED_CONFIG, 'utf8')).logLevel, logLevel)
    }
    await withdrawRelease(cluster)
    try {
      write('info')
      const notes = await cluster.helm('install', 'modekeep', chart, ...NAMESPACE, '--values', values)
      assert.match(notes, /rollout status daemonset modekeep/)
      await rolledOut('info')
      write('debug')
      await cluster.helm('upgrade', 'modekeep', chart, ...NAMESPACE, '--values', values)
      await rolledOut('debug')
      await cluster.helm('rollback', 'modekeep', '1', ...NAMESPACE)
      await rolledOut('info')
      await cluster.helm('uninstall', 'modekeep', ...NAMESPACE)
      await until('no pod of the DaemonSet is left', async () => (await podsOfRelease(cluster)).length === 0)
      return 'another configuration, the first one again, and no pod'
    } finally {
      await cluster.helm('uninstall', 'modekeep', ...NAMESPACE, '--ignore-not-found').catch(() => undefined)
      await applyRelease(cluster)
    }
  },
}

export const HELM = [lifecycle]
