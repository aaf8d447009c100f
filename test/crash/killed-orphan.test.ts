import * as fs from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import type { HealDocument } from '../../src/cli/commands/heal.ts'
import { cannotInject } from '../helpers/inject.ts'
import { KubeletAside, LEFT, podOptions } from '../helpers/left-pod.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { Crashing } from './every-call.ts'

const LONGEST_WITHOUT_CPU_MS = 60_000

let kubelet: KubeletAside | undefined
afterEach(async () => {
  await kubelet?.close()
  kubelet = undefined
})

const title = `a heal that unmounts a deleted pod's mount, killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  it(
    "the unmount of a deleted pod's mount, killed at any change, is completed by the next heal or by kubelet's call",
    async () => {
      const on = new Crashing('tmpfs')
      kubelet = await KubeletAside.start(on.node)
      const directory = `${on.node.top}/pods/${LEFT}/volumes/modekeep~fs/v`
      const before = async () => {
        await on.mount(LEFT, podOptions(LEFT))
        await kubelet?.listen()
      }
      const heal = async () => {
        const { text, code } = await on.node.start(['heal', '--json']).ended
        expect(code).toBe(0)
        const { mounts }: HealDocument = JSON.parse(text)
        return mounts
      }
      const healAgain = async () => {
        if (fs.existsSync(directory)) on.expectSound([LEFT])
        // A heal changes nothing where kubelet does not answer in time, or while a process of the killed heal still ends: on
        // a machine without CPU time that happens several times in a row.
        const end = performance.now() + LONGEST_WITHOUT_CPU_MS
        let mounts = await heal()
        while (mounts.some(({ action }) => action === 'none') && performance.now() < end) mounts = await heal()
        // Nothing is left to be found where the record had gone before.
        for (const { state, action, reason } of mounts)
          expect([state, action], reason).toEqual(['orphaned', 'unmounted'])
        expect(on.node.layers(LEFT)).toEqual([])
        on.expectOriginal()
      }
      const unmounted = async () => {
        await on.unmount(LEFT)
        on.expectOriginal()
      }
      // It opens three files of each process of the node.
      on.unsteady = /^openat$/
      // Each of them takes as long as kubelet is to be asked apart.
      const { choose } = on
      on.choose = (calls) => choose(calls).filter((_, index) => index % sized(4, 2, 1) === 0)
      const points = await on.killEverywhere('heal of an orphan', ['heal'], before, [healAgain, unmounted])
      expect(points).toBeGreaterThan(sized(5, 12, 30))
    },
    PATIENCE,
  )
})
