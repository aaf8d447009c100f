import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { until } from '../../kubelet/node/until.ts'
import { expect } from '../expect.ts'
import { diskVolume, ON_DISK } from '../node/disks.ts'
import type { Pod } from '../node/pod.ts'
import type { Case } from './case.ts'
import {
  clonesOnNode,
  createGroupPod,
  doctorsRuntime,
  mustBeUntouched,
  mustHaveNoClones,
  mustWrite,
  OPTIONAL,
  refusal,
} from './seen.ts'

const BAD: readonly [asked: string, message: RegExp][] = [
  ['wheel', /modekeep\/group is "wheel".*2000/],
  ['', /modekeep\/group is "".*2000/],
  ['pv-faults=', /modekeep\/group is "pv-faults=".*2000/],
  ['5000000000', /modekeep\/group is "5000000000".*4294967294/],
  ['pv-faults=2000,pv-faults=3000', /twice/],
  ['nothere=2000', /modekeep\/group is "nothere=2000".*"nothere"/],
]

/** What goes wrong, and what is then. */
export const FAULTS: readonly Case[] = [
  {
    name: 'an invalid annotation: the container is not created, the reason names the remedy, and nothing remains',
    async run(node) {
      const volume = diskVolume(node, 'faults', 'ext4')
      for (const [at, [asked, wanted]] of BAD.entries()) {
        const pod = await createGroupPod(node, `bad-${at}`, volume, asked).begin()
        expect(`the refusal of "${asked}"`, await refusal(asked, pod.create()), wanted)
        await pod.remove()
      }
      const { containers } = await node.cri.call<{ containers: object[] }>('ListContainers')
      expect('containers', containers, [])
      expect('what is left', [clonesOnNode(), containerRecords()], [[], []])
      mustBeUntouched(volume.path)
      volume.unstage()
      return `${BAD.length} annotations refused`
    },
  },
  {
    name: 'the volume can be unmounted as soon as the container has started, and a container that was never started leaves nothing',
    async run(node) {
      const volume = diskVolume(node, 'unstage', 'ext4')
      const pod = await createGroupPod(node, 'unstage', volume, '2000').run()
      await mustHaveNoClones()
      // As kubelet does: it unmounts while the runtime still has the container.
      await pod.stop()
      volume.unpublish(pod.uid)
      volume.unstage()
      volume.stage()
      volume.publish(pod.uid)
      await pod.remove()
      const never = await createGroupPod(node, 'never', volume, '2000').begin()
      await never.create()
      expect('clones of what has not started', clonesOnNode().length, 1)
      await never.remove()
      await mustHaveNoClones()
      volume.unstage()
      return 'unstaged; nothing left'
    },
  },
  {
    name: 'a container that cannot start: its volume can be unmounted while the runtime still has the container',
    async run(node) {
      const volume = diskVolume(node, 'wrong', 'ext4')
      const { wish } = createGroupPod(node, 'wrong', volume, '2000')
      const pod = await node.pod({ ...wish, program: '/no/such/program' }).begin()
      await pod.create()
      const message = await refusal('the start', pod.start())
      expect('why it does not start', message, /no\/such\/program/)
      await pod.end()
      await mustHaveNoClones()
      volume.unstage()
      expect('loop devices of its disk', loopsOf(`${node.place}/wrong.ext4`), '')
      await pod.remove()
      return 'unstaged before the container was removed'
    },
  },
  {
    name: 'a restarted container has its group again',
    async run(node) {
      const volume = diskVolume(node, 'again', 'ext4')
      const pod = await createGroupPod(node, 'again', volume, '2000').run()
      for (const attempt of [1, 2]) {
        const before = pod.containers[0]?.id
        await pod.stop(before)
        const id = await pod.create('main', undefined, attempt)
        await pod.start(id)
        await pod.removeContainer(before)
        await mustWrite(pod, volume.path, 2000, '/data', id)
      }
      await pod.remove()
      volume.unstage()
      return 'twice'
    },
  },
  {
    name: 'the plugin is killed between creation and start: the container has its group, and its clones are removed when the plugin is back',
    async run(node) {
      const volume = diskVolume(node, 'killed', 'ext4')
      const pod = await createGroupPod(node, 'killed', volume, '2000').begin()
      const waiting = await createGroupPod(node, 'waiting', volume, '2000').begin()
      await pod.create()
      await waiting.create()
      await node.plugin.stop('SIGKILL')
      await pod.start()
      await mustWrite(pod, volume.path, 2000)
      const without = await createGroupPod(node, 'without', volume, '2000').run()
      expect('without the plugin', await groupsSeenAsRoot(without), '1500')
      await node.startPlugin()
      await until('the clones of what has started go', () => clonesOnNode().length === 1)
      await until('it is known of each', () => states().join() === 'created,mapped,without')
      await waiting.start()
      await mustWrite(waiting, volume.path, 2000)
      await mustHaveNoClones()
      for (const one of [pod, waiting, without]) await one.remove()
      volume.unstage()
      return 'sees 2000; one made meanwhile sees 1500'
    },
  },
  {
    name: 'the plugin is late: the container is created without the group, which is reported as soon as the plugin continues',
    async run(node) {
      const volume = diskVolume(node, 'late', 'ext4')
      const pod = await createGroupPod(node, 'late', volume, '2000').begin()
      process.kill(node.plugin.pid ?? 0, 'SIGSTOP')
      try {
        await pod.create()
      } finally {
        process.kill(node.plugin.pid ?? 0, 'SIGCONT')
      }
      await until('it is known', () => states().join() === 'without')
      await pod.start()
      expect('what it sees', await groupsSeenAsRoot(pod), '1500')
      expect('clones on the node', clonesOnNode(), [])
      const next = await createGroupPod(node, 'after-late', volume, '2000').run()
      await mustWrite(next, volume.path, 2000)
      for (const one of [pod, next]) await one.remove()
      volume.unstage()
      return 'sees 1500, and status says "without"; the next one sees 2000'
    },
  },
  {
    name: 'the runtime restarts under running pods: the pods keep their group, and new pods get their group',
    async run(node) {
      const volume = diskVolume(node, 'restart', 'ext4')
      const pod = await createGroupPod(node, 'restart', volume, '2000').run()
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        await node.restartRuntime(signal)
        await mustWrite(pod, volume.path, 2000)
        const next = await createGroupPod(node, `after-${signal.toLowerCase()}`, volume, '2000').run()
        await mustWrite(next, volume.path, 2000)
        await next.remove()
      }
      await pod.remove()
      await mustHaveNoClones()
      volume.unstage()
      return 'after SIGTERM and SIGKILL'
    },
  },
  {
    name: 'a hundred concurrent containers get their groups',
    async run(node) {
      const volume = diskVolume(node, 'hundred', 'ext4')
      const pod = await createGroupPod(node, 'hundred', volume, '2000').begin()
      const began = performance.now()
      const refusals = await Promise.all(Array.from({ length: 100 }, (_, at) => pod.createAsKubelet(`c${at}`)))
      const seconds = (performance.now() - began) / 1000
      expect('clones on the node', clonesOnNode().length, 100)
      for (const { id } of pod.containers.filter((_, at) => at % 10 === 0)) {
        await pod.start(id)
        await mustWrite(pod, volume.path, 2000, '/data', id)
      }
      await pod.remove()
      await mustHaveNoClones()
      volume.unstage()
      const late = refusals.reduce((sum, each) => sum + each, 0)
      return `created in ${seconds.toFixed(1)} s, ${late} refused as late and created again; ten of them started, each sees 2000`
    },
  },
  {
    name: 'containers without an annotation are unchanged with the plugin',
    async run(node) {
      const volume = diskVolume(node, 'nothing', 'ext4')
      const pod = node.pod({
        name: 'nothing',
        volumes: { data: volume },
        mounts: [{ name: 'data', mountPath: '/data' }],
        groups: [ON_DISK],
      })
      await pod.run()
      await mustWrite(pod, volume.path, ON_DISK)
      expect('what is on record', containerRecords(), [])
      expect(
        'doctor',
        doctorsRuntime().join(),
        /^ok the container runtime \(containerd [^)]*\) asks "modekeep nri",ok /,
      )
      await pod.remove()
      volume.unstage()
      return 'sees 1500'
    },
  },
  {
    name: "a group that the processes are not in is refused, and the pod's event reports it",
    async run(node) {
      const volume = diskVolume(node, 'member', 'ext4')
      const pod = createGroupPod(node, 'member', volume, '2001', { [OPTIONAL]: 'false' })
      const message = await (await pod.begin()).create().then(
        () => 'created',
        (error: Error) => error.message,
      )
      expect('what came of it', message, /are not in group 2001: write it in supplementalGroups/)
      await pod.remove()
      volume.unstage()
      return message.slice(0, 200)
    },
  },
]

/** What is on record of containers. */
const containerRecords = () => {
  const place = '/var/lib/modekeep/nri'
  return fs.existsSync(place) ? fs.readdirSync(place).filter((name) => name.endsWith('.json')) : []
}

/** How "modekeep status" calls each container that asked. */
function states(): string[] {
  const { containers } = JSON.parse(execFileSync(BINARY, ['status', '--json'], { encoding: 'utf8' }))
  return containers.map(({ state }: { state: string }) => state).sort()
}

const loopsOf = (image: string) => execFileSync('losetup', ['-j', image], { encoding: 'utf8' }).trim()

/** After all others. */
export const LAST: readonly Case[] = [
  {
    name: 'in the end no clone and no record remain',
    async run() {
      await mustHaveNoClones()
      await until('no container is on record', () => containerRecords().length === 0, 10)
      return 'nothing'
    },
  },
]

async function groupsSeenAsRoot(pod: Pod): Promise<string> {
  return pod.says('stat -c %g /data')
}
