import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe('bindfs')

describe.skipIf(skipReason !== '')(
  addSkipReason('a FUSE mount with secrets that has lost its guard', skipReason),
  () => {
    it('gets a new guard mount from heal and is otherwise unchanged', async () => {
      const node = new FuseNode(['fuse.bindfs'])
      const source = `${node.volumes}/data`
      fs.mkdirSync(source)
      expect(await node.mount('a', { 'kubernetes.io/fsType': 'fuse.bindfs', source })).toEqual({ status: 'Success' })
      const store = { host: linuxHost, config: { stateDir: node.state } }
      for (const record of listReadableMountRecords(store)) mountRecords.write(store, { ...record, hadSecrets: true })
      const [directory, aside] = [node.podDirectory('a'), `${node.top}/aside`]
      fs.mkdirSync(aside)
      execFileSync('mount', ['--move', directory, aside])
      execFileSync('umount', [directory])
      execFileSync('mount', ['--move', aside, directory])
      const layers = () => node.layers('a').map(({ fsType, id }) => [fsType, id])
      const [[, id] = []] = layers()
      expect(layers()).toEqual([['fuse', id]])

      expect(node.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
      expect(layers()).toEqual([
        ['tmpfs', expect.any(Number)],
        ['fuse', id],
      ])
      execFileSync('umount', ['--lazy', directory])
      expect(() => fs.writeFileSync(`${directory}/lost`, 'data')).toThrow('EROFS')
    })
  },
)
