import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { detachDisks, listLeftLoopDevices } from '../helpers/disks.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { blocksOf, kubeletOptions, type Pod, podsOf, type Volume } from './example.ts'
import { PREPARE, type Prepared, VOLUMES } from './sources.ts'

const page = fs.readFileSync(resolve(import.meta.dirname, '../../docs/volumes.md'), 'utf8')
const examples = blocksOf(page, 'yaml').map(({ heading, text }) => ({ heading, pods: podsOf(text) }))
const volumesOf = (pods: readonly Pod[]) => pods.flatMap(({ spec }) => spec.volumes)

describe('docs/volumes.md', () => {
  it('has a Pod with modekeep in every example, and a test for every volume', () => {
    const volumes = volumesOf(examples.flatMap(({ pods }) => pods))
    expect(examples.filter(({ pods }) => pods.length === 0)).toEqual([])
    expect(new Set(volumes.map(({ flexVolume }) => flexVolume.driver))).toEqual(new Set(['modekeep/fs']))
    expect([...new Set(volumes.map(({ name }) => name))].sort()).toEqual(Object.keys(PREPARE).sort())
  })
})

const title = `an example of the page${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  let made: string | undefined
  beforeAll(() => {
    made = fs.mkdirSync(VOLUMES, { recursive: true })
    // The installer makes the state directory above it 0700, so that no user of the node reaches a volume.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0700', 'volumes', VOLUMES])
  })
  afterAll(() => {
    execFileSync('umount', [VOLUMES])
    if (made !== undefined) fs.rmSync(made, { recursive: true })
  })

  it.each(examples)(
    'the example "$heading" of the volumes page is mounted as written, with its group',
    async ({ pods }) => {
      const node = new BinaryNode()
      // Named by the page, but for the places of modekeep's own files.
      const shown = JSON.parse(blocksOf(page, 'json')[0]?.text ?? '')
      fs.writeFileSync(`${node.top}/config.json`, JSON.stringify({ ...shown, stateDir: node.state, logFile: node.log }))
      const prepared = new Map<string, Prepared>()
      try {
        for (const volume of volumesOf(pods)) {
          if (prepared.has(volume.name)) continue
          const ready = await PREPARE[volume.name]?.(volume)
          if (ready) prepared.set(volume.name, ready)
        }
        for (const pod of pods) for (const volume of pod.spec.volumes) await mount(pod, volume)
        // All of them are there at once.
        for (const pod of pods) for (const volume of pod.spec.volumes) expectShown(pod, volume)
        for (const pod of pods) {
          expect(await node.call('unmount', node.podDirectory(pod.metadata.name))).toEqual({ status: 'Success' })
          expect(node.layers(pod.metadata.name)).toEqual([])
        }
      } finally {
        for (const { end } of prepared.values()) await end?.()
        detachDisks()
      }
      expect(listLeftLoopDevices(VOLUMES)).toEqual([])

      async function mount(pod: Pod, volume: Volume): Promise<void> {
        const options = kubeletOptions(pod, volume, prepared.get(volume.name)?.secrets ?? {})
        const directory = node.podDirectory(pod.metadata.name)
        expect(await node.call('mount', directory, JSON.stringify(options))).toMatchObject({ status: 'Success' })
      }

      function expectShown(pod: Pod, volume: Volume): void {
        const directory = node.podDirectory(pod.metadata.name)
        const { files } = prepared.get(volume.name) ?? { files: {} }
        for (const [name, content] of Object.entries(files)) {
          expect(fs.readFileSync(`${directory}/${name}`, 'utf8')).toBe(content)
        }
        for (const name of ['.', ...Object.keys(files)]) {
          expect(fs.statSync(`${directory}/${name}`).gid, name).toBe(pod.spec.securityContext?.fsGroup)
        }
        expect(node.layers(pod.metadata.name).at(-1)?.options.includes('ro')).toBe(volume.flexVolume.readOnly === true)
      }
    },
  )
})
