import * as fs from 'node:fs'
import { expect } from '../expect.ts'
import { diskVolume, fill, ON_DISK } from '../node/disks.ts'
import { OwnVolume } from '../node/volumes.ts'
import type { Case } from './case.ts'
import { GROUP, groupsSeen, mustBeUntouched, mustWrite } from './seen.ts'

const FIRST = 1 << 20
const DATA = [{ name: 'data', mountPath: '/data' }]

/** Pods in user namespaces of their own: `hostUsers: false`. */
export const NAMESPACES: readonly Case[] = [
  {
    name: 'hostUsers: false: a volume shows the group and ids of the pod, next to a pod with host users',
    needs: '2.0',
    async run(node) {
      const volume = diskVolume(node, 'userns', 'ext4')
      const podOf = (name: string, group: number, more: object) =>
        node.pod({
          name,
          annotations: { [GROUP]: String(group) },
          volumes: { data: volume },
          mounts: DATA,
          groups: [group],
          ...more,
        })
      const own = await podOf('userns-own', 3000, { firstId: FIRST }).run()
      const other = await podOf('userns-other', 4000, { firstId: FIRST + 65_536 }).run()
      const plain = await podOf('userns-plain', 2000, {}).run()
      for (const [pod, group] of [
        [own, 3000],
        [other, 4000],
        [plain, 2000],
      ] as const) {
        expect(`${pod.wish.name}: the groups it sees`, await groupsSeen(pod), String(group))
        expect(`${pod.wish.name}: the owner it sees`, await pod.says('stat -c %u /data/one'), '0')
        await pod.says(`cat /data/one && echo more >>/data/one && echo new >/data/sub/${pod.wish.name}`)
        expect(
          'the new file, as it is seen',
          await pod.says(`stat -c %u:%g /data/sub/${pod.wish.name}`),
          `1000:${group}`,
        )
        const { uid, gid } = fs.statSync(`${volume.path}/sub/${pod.wish.name}`)
        expect('the new file, on disk', [uid, gid], [1000, ON_DISK])
      }
      mustBeUntouched(volume.path)
      for (const pod of [own, other, plain]) await pod.remove()
      volume.unstage()
      return 'sees 3000, 4000 and 2000, each writes; 1500 and its own uid on disk'
    },
  },
  ...(['idmap', 'auto'] as const).map(
    (ownership): Case => ({
      name: `hostUsers: false: modekeep's own volume with ownership ${ownership}, next to a pod with host users`,
      needs: '2.0',
      async run(node) {
        const path = `${node.place}/own-${ownership}`
        fs.mkdirSync(path)
        fill(path)
        const podOf = (name: string, group: number, more: object) =>
          node.pod({
            name,
            volumes: { data: new OwnVolume(path, group, { ownership }) },
            mounts: DATA,
            groups: [group],
            ...more,
          })
        const own = await podOf(`own-${ownership}`, 3000, { firstId: FIRST }).run()
        const plain = await podOf(`plain-${ownership}`, 2000, {}).run()
        for (const pod of [own, plain]) await mustWrite(pod, path, pod.wish.groups?.[0] ?? 0)
        for (const pod of [own, plain]) await pod.remove()
        return 'sees 3000 and 2000, each writes; 1500 on disk'
      },
    }),
  ),
]
