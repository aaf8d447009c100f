import { once } from 'node:events'
import { describe, it } from 'vitest'
import { cannotMount } from '../binary/modekeep.ts'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode } from '../frontends/csi/node.ts'
import { expectGolden, normalize } from './golden.ts'

describe.skipIf(cannotMount !== '')(`the golden file${cannotMount}`, () => {
  it('csi.txt has the replies and the events of the CSI server', async () => {
    const node = new CsiNode()
    try {
      const server = await node.serve()
      const source = node.volume('data', 2)
      const walk = { group: '2000', attributes: { ownership: 'walk' } }
      const { socket } = node
      const replies = {
        pluginInfo: await call({ socket }, 'Identity/GetPluginInfo', {}),
        pluginCapabilities: await call({ socket }, 'Identity/GetPluginCapabilities', {}),
        capabilities: await call({ socket }, 'Node/NodeGetCapabilities', {}),
        publish: await node.publish(1, source, walk),
        repeat: await node.publish(1, source, walk),
        otherGroup: await node.publish(2, source, { ...walk, group: '3000' }),
        ownership: await node.publish(2, source, { attributes: { ownership: 'all' } }),
        attribute: await node.publish(2, source, { attributes: { unknown: 'yes' } }),
        refused: await node.publish(2, '/etc'),
        missing: await node.publish(2, `${source}/missing`),
        stats: await node.stats(1),
        unpublish: await node.unpublish(1),
        unpublishAgain: await node.unpublish(1),
      }
      server.kill('SIGTERM')
      await once(server, 'exit')
      const lines = Object.entries(replies).map(([name, answer]) => `${name}: ${JSON.stringify(answer, noBigInt)}\n`)
      const places = { uid: node.uid(1).slice(0, -2), node: node.top }
      expectGolden('csi.txt', normalize(`${lines.join('')}\nevents:\n${node.stdout}`, places))
    } finally {
      await node.end()
    }
  })
})

function noBigInt(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value
}
