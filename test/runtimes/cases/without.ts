import * as fs from 'node:fs'
import { expect } from '../expect.ts'
import { diskVolume } from '../node/disks.ts'
import { NRI_SOCKET } from '../node/node.ts'
import { EmptyDir } from '../node/volumes.ts'
import type { Case } from './case.ts'
import { doctorsRuntime } from './seen.ts'

/** What the runtime does by itself: without it the other cases would show nothing. */
export const WITHOUT: readonly Case[] = [
  {
    name: 'control: without the plugin a group that the volume does not have cannot write',
    async run(node) {
      expect('the socket for plugins', fs.existsSync(NRI_SOCKET), true)
      expect(
        'doctor',
        doctorsRuntime().join(),
        /^ok the container runtime asks plugins \(NRI, "[^"]*nri.sock"\); no "modekeep nri"/,
      )
      const volume = diskVolume(node, 'control', 'ext4')
      const pod = node.pod({
        name: 'control',
        annotations: { 'modekeep/group': '2000' },
        volumes: { data: volume, tmp: new EmptyDir() },
        mounts: [
          { name: 'data', mountPath: '/data' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
        groups: [2000],
      })
      await pod.run()
      const seen = await pod.says('stat -c %g /data')
      const { code, text } = await pod.exec('echo >/data/new')
      expect('its group', seen, '1500')
      expect('a write', code === 0, false)
      await pod.remove()
      volume.unstage()
      return `sees group ${seen}; ${text.replace(/^.*: /, '')}`
    },
  },
  {
    name: 'control: a pod with its own user namespace has the expected uid_map',
    // Those before refuse volumes of such pods.
    needs: '2.0',
    async run(node) {
      const pod = node.pod({
        name: 'userns',
        volumes: { tmp: new EmptyDir() },
        mounts: [{ name: 'tmp', mountPath: '/tmp' }],
        firstId: 1 << 20,
      })
      await pod.run()
      const map = (await pod.says('cat /proc/self/uid_map')).replace(/\s+/g, ' ').trim()
      expect('uid_map', map, `0 ${1 << 20} 65536`)
      await pod.remove()
      return map
    },
  },
]
