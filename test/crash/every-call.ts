import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import { killAtEach } from '../helpers/inject.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import type { NodeDirectory } from '../helpers/node-directory.ts'
import { FULL, sized } from '../helpers/size.ts'
import { endsOfWrites, isPassing, isPersistent, listKillPoints, type TracedCall } from '../helpers/strace-text.ts'
import {
  expectNothingWidened,
  expectSame,
  GROUP,
  makeVolume,
  mountStorage,
  owned,
  type Snapshot,
  snapshot,
  wipe,
} from './volume.ts'

/** A node with one small volume, on which a call can be killed at each of its changes. */
export class Crashing {
  readonly node: NodeDirectory
  readonly source: string
  original: Snapshot = {}
  whole: Snapshot = {}

  constructor(fsType: 'tmpfs' | 'ext4', node: NodeDirectory = new BinaryNode()) {
    this.node = node
    this.source = `${node.volumes}/data`
    mountStorage(node, fsType)
  }

  fresh(): void {
    wipe(this.node)
    this.original = makeVolume(this.source)
    this.whole = owned(this.original, this.source)
  }

  mountCall(pod: string, more: Record<string, string> = {}): string[] {
    const asked = { source: this.source, ownership: 'walk', restoreOnUnmount: 'true', ...more }
    const options = JSON.stringify({ ...asked, 'kubernetes.io/fsGroup': String(GROUP) })
    return ['mount', this.node.podDirectory(pod), options]
  }

  async mount(pod: string, more: Record<string, string> = {}): Promise<void> {
    expect(await this.node.call(...this.mountCall(pod, more))).toEqual({ status: 'Success' })
    expect(this.node.layers(pod)).toHaveLength(1)
    expectSame(snapshot(this.node.podDirectory(pod)), this.whole)
  }

  async unmount(pod: string): Promise<void> {
    expect(await this.node.call('unmount', this.node.podDirectory(pod))).toEqual({ status: 'Success' })
    expect(this.node.layers(pod)).toEqual([])
  }

  /** Right after a death: every inode is the original, the whole, or on its way; what a pod can see is whole. */
  expectSound(pods: readonly string[]): void {
    expectNothingWidened(snapshot(this.source), this.original, this.whole)
    for (const pod of pods) {
      const layers = this.node.layers(pod).length
      expect(layers).toBeLessThanOrEqual(1)
      if (layers === 1) expectSame(snapshot(this.node.podDirectory(pod)), this.whole)
    }
  }

  expectOriginal(): void {
    expectSame(snapshot(this.source), this.original)
    expect(this.node.mountState()).toEqual([])
    const warnings = this.node.logLines().filter(({ level }) => level === 'warn' || level === 'error')
    expect(warnings).toEqual([])
  }

  /** Names of calls whose number differs from run to run. */
  unsteady: RegExp | undefined

  /** By default at each change that lasts; a death at any other call leaves what a death at the next of those does. */
  choose = (calls: TracedCall[]) => {
    const ends = endsOfWrites(calls)
    const { top } = this.node
    const chosen = (call: TracedCall) => isPersistent(call, top) && (FULL || ends(call))
    return listKillPoints(calls, (call) => chosen(call) || (FULL && isPassing(call)), top, this.unsteady)
  }

  /**
   * Tries a share of the points, and all of them in a full run.
   * @param ways what may come after the death; by default each point takes the next of them in turn
   * @returns how many points there are
   */
  async killEverywhere(
    title: string,
    args: readonly string[],
    before: () => Promise<void>,
    ways: (() => Promise<void>)[],
  ): Promise<number> {
    let [points, triedInAll] = [0, 0]
    const notReached: string[] = []
    for (const round of FULL ? ways.keys() : [0]) {
      let found = 0
      const { tried, missed } = await killAtEach(this.node, {
        args,
        choose: (calls) => {
          const all = this.choose(calls)
          found = all.length
          return all.filter((_, index) => index % sized(8, 2, 1) === 0)
        },
        prepare: async () => {
          this.fresh()
          await before()
          fs.rmSync(dirname(this.node.log), { recursive: true, force: true })
        },
        check: async (_, index) => ways[(index + round) % ways.length]?.(),
      })
      points += found
      triedInAll += tried
      notReached.push(...missed)
    }
    console.log(
      `${title}: ${triedInAll} of ${points} points tried, ${triedInAll - notReached.length} deaths, all survived`,
    )
    expect(notReached).toEqual([])
    return points
  }
}
