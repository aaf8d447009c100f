import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { FULL, PATIENCE } from '../helpers/size.ts'
import { Crashing } from './every-call.ts'
import { expectSame, makeVolume, owned, type Snapshot, snapshot } from './volume.ts'

const title = `a replacement killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

/** Two layers are what a death between attaching the new mount beneath and taking the old one away leaves. */
function expectWholeOnTop(on: Crashing): void {
  expect([1, 2]).toContain(on.node.layers('a').length)
  expectSame(snapshot(on.node.podDirectory('a')), on.whole)
}

/** A walk's own changes are tried in killed-mount.test.ts, so that npm test leaves those out here. */
function withoutWalk(on: Crashing): void {
  const { choose } = on
  const ofAWalk = /^(fchownat|fchmodat2|pwrite64|statx|getxattr|(f|l)?(set|remove)xattr)$/
  if (!FULL) on.choose = (calls) => choose(calls).filter(({ name }) => !ofAWalk.test(name))
}

describe.skipIf(cannotInject !== '').each(FULL ? (['tmpfs', 'ext4'] as const) : (['tmpfs'] as const))(
  `${title}, on %s`,
  (fsType) => {
    it(
      'a replacement with other options, killed at any change, leaves the old or the new mount, and the next call completes',
      async () => {
        const on = new Crashing(fsType)
        const changed = { mountOptions: 'noexec', fsGroupChangePolicy: 'Always' }
        const mountAgain = async () => {
          expectWholeOnTop(on)
          await on.mount('a', changed)
          expect(on.node.layers('a')[0]?.options).toContain('noexec')
          await on.unmount('a')
          on.expectOriginal()
        }
        const unmountFirst = async () => {
          expectWholeOnTop(on)
          await on.unmount('a')
          on.expectOriginal()
        }
        const mountTheOld = async () => {
          expectWholeOnTop(on)
          await on.mount('a')
          expect(on.node.layers('a')[0]?.options).not.toContain('noexec')
          await on.unmount('a')
          on.expectOriginal()
        }
        const ways = [mountAgain, unmountFirst, mountTheOld]
        const points = await on.killEverywhere('other options', on.mountCall('a', changed), () => on.mount('a'), ways)
        expect(points).toBeGreaterThan(8)
      },
      PATIENCE,
    )

    it(
      'a replacement with another source, killed at any change, shows the old or the new volume completely, and both are restored',
      async () => {
        const on = new Crashing(fsType)
        const other = `${on.node.volumes}/other`
        withoutWalk(on)
        let originalOfOther: Snapshot = {}
        let wholeOfOther: Snapshot = {}
        const before = async () => {
          originalOfOther = makeVolume(other)
          wholeOfOther = owned(originalOfOther, other)
          fs.writeFileSync(`${other}/plain`, 'other')
          await on.mount('a')
        }
        const sound = () => {
          expectWholeOnTop(on)
          const shown = fs.statSync(on.node.podDirectory('a')).ino
          expect([on.source, other].map((source) => fs.statSync(source).ino)).toContain(shown)
        }
        const isOther = () => fs.readFileSync(`${on.node.podDirectory('a')}/plain`, 'utf8') === 'other'
        // The old volume is no longer this directory's; a later mount of it runs its pending restore.
        const bothGoBack = async () => {
          for (const source of [on.source, other]) {
            await on.mount('a', { source })
            expect(isOther()).toBe(source === other)
            await on.unmount('a')
          }
          on.expectOriginal()
          expectSame(snapshot(other), originalOfOther)
        }
        const mountAgain = async () => {
          sound()
          await on.mount('a', { source: other })
          expect(isOther()).toBe(true)
          expectSame(snapshot(other), wholeOfOther)
          await on.unmount('a')
          await bothGoBack()
        }
        const unmountFirst = async () => {
          sound()
          await on.unmount('a')
          expect(on.node.mountState()).toEqual([])
          await bothGoBack()
        }
        const call = on.mountCall('a', { source: other })
        const points = await on.killEverywhere('another source', call, before, [mountAgain, unmountFirst])
        expect(points).toBeGreaterThan(20)
      },
      PATIENCE,
    )
  },
)
