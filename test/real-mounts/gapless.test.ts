import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { sized } from '../helpers/size.ts'
import { isRoot, kernelStage } from '../helpers/stage.ts'
import { Reader } from './reader.ts'
import { type Place, REPLACEMENTS } from './replacements.ts'

const TEST_ROUNDS = { tmpfs: sized(10, 80, 2000), ext4: sized(4, 20, 400) }
const BY_BINARY = sized(1, 4, 100)
const skipReason = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

/** A second reader where a container's mount namespace gets what kubelet's does (mountPropagation: HostToContainer). */
async function readers(directory: string, bare: fs.Stats, shared: boolean): Promise<Reader[]> {
  const all = [new Reader(directory, bare)]
  if (shared) all.push(new Reader(directory, bare, ['unshare', '--mount', '--propagation', 'slave']))
  for (const reader of all) await reader.ready()
  return all
}

async function expectNoGap(all: readonly Reader[], rounds: number): Promise<void> {
  for (const reader of all) {
    // Otherwise it was not there.
    expect(await reader.stop()).toBeGreaterThan(rounds)
    expect(reader.faults).toEqual([])
  }
}

describe.skipIf(!isRoot)(`during the replacement of a mount a reader sees the old or the new one${skipReason}`, () => {
  describe.each([
    ['on tmpfs', 'private', 'tmpfs'],
    ['on tmpfs', 'shared', 'tmpfs'],
    ['on ext4', 'private', 'ext4'],
    ['on ext4', 'shared', 'ext4'],
  ] as const)('%s, in a %s mount', (_, propagation, fsType) => {
    it.each(REPLACEMENTS)('for $name', async ({ change }) => {
      const stage = kernelStage(fsType)
      onTestFinished(() => stage.close())
      const place: Place = { volumes: `${stage.top}/volumes`, directory: stage.podDirectory('a') }
      fs.mkdirSync(place.directory, { recursive: true })
      // As systemd makes the root of a node, with the sources and with kubelet's directory.
      if (propagation === 'shared') execFileSync('mount', ['--make-rshared', stage.top])
      const bare = fs.statSync(place.directory)
      await stage.mount('a', change(place, 0))
      const all = await readers(place.directory, bare, propagation === 'shared')
      for (let turn = 1; turn <= TEST_ROUNDS[fsType]; turn++) {
        await stage.mount('a', change(place, turn))
        expect(stage.noted.decision).toBe('replace')
        for (const reader of all) expect(reader.layers(place.directory)).toHaveLength(1)
      }
      await expectNoGap(all, TEST_ROUNDS[fsType])
      await stage.unmount('a')
      expect(stage.layers('a')).toEqual([])
    })
  })
})

describe.skipIf(!isRoot)(`kubelet's mount call${skipReason}`, () => {
  it.each(REPLACEMENTS)('replaces a mount without a gap for $name', async ({ change }) => {
    const node = new BinaryNode()
    const place: Place = { volumes: node.volumes, directory: node.podDirectory('a') }
    execFileSync('mount', ['--bind', `${node.top}/pods`, `${node.top}/pods`])
    onTestFinished(() => {
      execFileSync('umount', ['--lazy', `${node.top}/pods`])
    })
    execFileSync('mount', ['--make-rshared', `${node.top}/pods`])
    const bare = fs.statSync(place.directory)
    const mount = async (turn: number) => {
      const options = JSON.stringify(change(place, turn))
      expect(await node.call('mount', place.directory, options)).toEqual({ status: 'Success' })
      expect(node.layers('a')).toHaveLength(1)
    }
    await mount(0)
    const all = await readers(place.directory, bare, true)
    for (let turn = 1; turn <= BY_BINARY; turn++) await mount(turn)
    await expectNoGap(all, BY_BINARY)
    expect(await node.call('unmount', place.directory)).toEqual({ status: 'Success' })
    expect(node.mountState()).toEqual([])
  })
})
