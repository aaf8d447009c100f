import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { isAtLeast } from '../../cluster/plane/version.ts'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { expect } from '../expect.ts'
import { fill } from '../node/disks.ts'
import type { RuntimeNode } from '../node/node.ts'
import type { Pod, VolumeMount } from '../node/pod.ts'
import { CsiVolume, OwnVolume } from '../node/volumes.ts'
import type { Case } from './case.ts'
import { doctorsRuntime, GROUP } from './seen.ts'

const READ_ONLY = { name: 'data', mountPath: '/read-only', readOnly: true }
const MOUNTS: readonly VolumeMount[] = [{ name: 'data', mountPath: '/data' }, READ_ONLY]

/** A directory with what the mount options are to stop: a device that the container may use, and a program. */
function makeSource(node: RuntimeNode, name: string): string {
  const path = `${node.place}/${name}`
  fs.mkdirSync(path)
  fill(path)
  fs.chmodSync(path, 0o755)
  fs.mkdirSync(`${path}/part`)
  for (const directory of [path, `${path}/part`]) {
    execFileSync('mknod', ['-m', '0666', `${directory}/null`, 'c', '1', '3'])
    fs.writeFileSync(`${directory}/program`, '#!/bin/sh\necho ran\n', { mode: 0o755 })
  }
  return path
}

/** The restrictions of a mount in the container, as its kernel has them. */
async function restrictionsIn(pod: Pod, at: string): Promise<string> {
  const options = (await pod.says('cat /proc/self/mountinfo'))
    .split('\n')
    .map((line) => line.split(' '))
    .findLast((fields) => fields[4] === at)?.[5]
  return (options ?? 'not mounted')
    .split(',')
    .filter((option) => /^(ro|nosuid|nodev|noexec)$/.test(option))
    .join()
}

/** The device cannot be opened and the program cannot run. */
async function mustBeRestricted(pod: Pod, at: string, restrictions: string): Promise<void> {
  expect(`${pod.wish.name}: options of ${at}`, await restrictionsIn(pod, at), restrictions)
  expect(`the device of ${at}`, (await pod.exec(`cat ${at}/null`)).text, /Permission denied/)
  expect(`the program of ${at}`, (await pod.exec(`${at}/program`)).text, /Permission denied/)
}

/** What status says that the containers may not have. */
function unenforced(pod: Pod): string {
  const { mounts } = JSON.parse(execFileSync(BINARY, ['status', '--json'], { encoding: 'utf8' }))
  return mounts.find(({ directory }: { directory: string }) => directory.includes(pod.uid)).unenforced.join()
}

const runcVersion = () =>
  /runc version (\S+)/.exec(execFileSync('runc', ['--version'], { encoding: 'utf8' }))?.[1] ?? ''

/** What each runc leaves of a volume's mount options by itself. */
export const MOUNT_OPTIONS_WITHOUT: readonly Case[] = [
  {
    name: "mount options: without the plugin runc clears nosuid, nodev and noexec of modekeep's own volume, and status and doctor report it",
    async run(node) {
      node.configure()
      const options = { ownership: 'none', mountOptions: 'noexec' }
      const volume = new OwnVolume(makeSource(node, 'options-without'), 2000, options)
      const pod = await node.pod({ name: 'options-without', volumes: { data: volume }, mounts: MOUNTS }).run()
      const seen = [await restrictionsIn(pod, '/data'), await restrictionsIn(pod, '/read-only')]
      const isNewer = isAtLeast(runcVersion(), '1.2')
      expect('the restrictions', seen, isNewer ? ['', 'ro'] : ['nosuid,nodev,noexec', 'ro'])
      expect('a program of the readOnly mount', await pod.says('/read-only/program'), 'ran')
      expect('status', unenforced(pod), 'nosuid,nodev,noexec')
      expect(
        'doctor',
        doctorsRuntime().join('\n'),
        /warning containerd \S+ clears nosuid, nodev and noexec .* 1 mounts depend on it/,
      )
      await pod.remove()
      return `writable ${seen[0] || 'none'}, readOnly ${seen[1]}`
    },
  },
]

/** Containers have the restrictions of the volume's mount, with every runc. */
export const MOUNT_OPTIONS: readonly Case[] = [
  {
    name: "mount options: a container has the options of modekeep's own volume, also with readOnly and for a subPath",
    async run(node) {
      const options = { ownership: 'none', mountOptions: 'noexec' }
      const volume = new OwnVolume(makeSource(node, 'options-own'), 2000, options)
      const part = { name: 'data', mountPath: '/part', subPath: 'part' }
      const pod = await node.pod({ name: 'options-own', volumes: { data: volume }, mounts: [...MOUNTS, part] }).run()
      await mustBeRestricted(pod, '/data', 'nosuid,nodev,noexec')
      await mustBeRestricted(pod, '/read-only', 'ro,nosuid,nodev,noexec')
      await mustBeRestricted(pod, '/part', 'nosuid,nodev,noexec')
      expect('status', unenforced(pod), '')
      expect('doctor', doctorsRuntime().join('\n'), /ok nosuid, nodev and noexec of the volumes hold in containers/)
      await pod.remove()
      return 'nosuid,nodev,noexec at each of its mounts'
    },
  },
  {
    name: "mount options: a clone of another driver's volume has the options of that driver's mount",
    async run(node) {
      const path = makeSource(node, 'options-clone')
      fs.chmodSync(path, 0o2770)
      const volume = new CsiVolume('options-clone', ['--bind', path]).stage()
      execFileSync('mount', ['-o', 'remount,bind,nosuid,nodev,noexec', volume.path])
      const annotations = { [GROUP]: '2000' }
      const wish = { name: 'options-clone', annotations, volumes: { data: volume }, mounts: MOUNTS, groups: [2000] }
      const pod = await node.pod(wish).run()
      await mustBeRestricted(pod, '/data', 'nosuid,nodev,noexec')
      await mustBeRestricted(pod, '/read-only', 'ro,nosuid,nodev,noexec')
      await pod.remove()
      volume.unstage()
      return 'nosuid,nodev,noexec at each of its mounts'
    },
  },
  {
    name: "mount options: a pod with its own user namespace has the volume's options even without the plugin",
    needs: '2.0',
    async run(node) {
      const options = { ownership: 'none', mountOptions: 'noexec' }
      const volume = new OwnVolume(makeSource(node, 'options-userns'), 2000, options)
      const wish = { name: 'options-userns', volumes: { data: volume }, mounts: MOUNTS, firstId: 1 << 20 }
      const pod = await node.pod(wish).run()
      const seen = [await restrictionsIn(pod, '/data'), await restrictionsIn(pod, '/read-only')]
      expect('the restrictions', seen, ['nosuid,nodev,noexec', 'ro,nosuid,nodev,noexec'])
      expect('status', unenforced(pod), '')
      await pod.remove()
      return 'nosuid,nodev,noexec at each of its mounts'
    },
  },
]
