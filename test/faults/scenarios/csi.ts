import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import type { CsiTask } from '../../../src/frontends/csi/worker-tasks.ts'
import { parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'
import { CSI_WORKER_VERB } from '../../../src/kernel/worker-process.ts'
import { expectSame, snapshot } from '../../crash/volume.ts'
import { makeTree } from '../../helpers/tree.ts'
import { hasSucceeded, type Situation } from '../call-scenario.ts'
import type { FaultNode } from '../fault-node.ts'

const POD = 'csi'
const target = (on: FaultNode) => `${on.node.top}/pods/${POD}/volumes/kubernetes.io~csi/v/mount`
const layers = (on: FaultNode) =>
  selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), target(on))

const walked = (on: FaultNode) => optionsOf(on.mountCall(POD))
const plain = (on: FaultNode) => optionsOf(on.plainMount(POD, { source: on.other }))
const optionsOf = ([, , options = '']: readonly string[]) => options

/** The server's order to a worker, which does it and ends, as its input does. */
function order(on: FaultNode, what: 'publish' | 'unpublish', options = ''): string {
  const about = { volumeId: 'csi-1', directory: target(on) }
  const job: CsiTask =
    what === 'publish'
      ? { do: what, ...about, options: JSON.parse(options), secrets: {}, lifecycle: 'inline' }
      : { do: what, ...about }
  return `${JSON.stringify(job)}\n`
}

const publish = (on: FaultNode, options: string) => on.succeed(['publish', target(on), options])

/** As kubelet leaves it before its first call: the parent alone. */
async function published(on: FaultNode, options: string): Promise<void> {
  fs.mkdirSync(dirname(target(on)), { recursive: true, mode: 0o750 })
  if (options !== '') await publish(on, options)
}

/** Kubelet's last call: it succeeds however often, and nothing is left of the directory. */
async function unpublished(on: FaultNode): Promise<void> {
  for (let times = 0; times < 2; times++) await on.succeed(['unpublish', target(on)])
  expect(fs.existsSync(target(on))).toBe(false)
}

function showsWhole(on: FaultNode): void {
  expect(layers(on)).toHaveLength(1)
  expectSame(snapshot(target(on)), on.whole)
}

function showsOther(on: FaultNode): void {
  expect(layers(on)).toHaveLength(1)
  expect(fs.readFileSync(`${target(on)}/plain`, 'utf8')).toBe('other')
}

async function publishedAgain(on: FaultNode): Promise<void> {
  await published(on, '')
  await publish(on, walked(on))
  showsWhole(on)
  await unpublished(on)
}

const worker = { pods: [POD], reader: 'server' as const, args: () => [CSI_WORKER_VERB] }

export const CSI: Situation[] = [
  {
    ...worker,
    title: 'publish with a walk, in CSI',
    input: (on) => order(on, 'publish', walked(on)),
    before: (on) => published(on, ''),
    sound(on) {
      on.expectSound([])
      if (layers(on).length > 0) showsWhole(on)
    },
    promised: showsWhole,
    next: [
      publishedAgain,
      // What a publication that failed has begun stays pending for the volume.
      async (on) => {
        await unpublished(on)
        on.expectSound([])
        await publishedAgain(on)
      },
    ],
  },
  {
    ...worker,
    title: 'publish again, in CSI',
    input: (on) => order(on, 'publish', walked(on)),
    before: (on) => published(on, walked(on)),
    // A pod runs there, so a failing repeat removes nothing.
    sound: showsWhole,
    promised: showsWhole,
    next: [publishedAgain, unpublished],
  },
  {
    ...worker,
    title: 'publish again after the source was replaced, in CSI',
    input: (on) => order(on, 'publish', plain(on)),
    async before(on) {
      await published(on, plain(on))
      fs.rmSync(on.other, { recursive: true })
      makeTree(fs, on.other, ['file plain 0600 9'])
      fs.writeFileSync(`${on.other}/plain`, 'other')
    },
    sound: (on) => expect([1, 2]).toContain(layers(on).length),
    promised: showsOther,
    next: [
      async (on) => {
        await publish(on, plain(on))
        showsOther(on)
        await unpublished(on)
      },
      unpublished,
    ],
  },
  {
    ...worker,
    title: 'unpublish with a restore, in CSI',
    input: (on) => order(on, 'unpublish'),
    before: (on) => published(on, walked(on)),
    sound(on) {
      on.expectSound([])
      if (fs.existsSync(target(on)) && layers(on).length > 0) showsWhole(on)
    },
    promised(on) {
      expect(layers(on)).toEqual([])
      expect(fs.existsSync(target(on))).toBe(false)
    },
    next: [
      publishedAgain,
      // What could not be restored stays pending for the volume; a failed call is retried.
      async (on, { ended }) => (hasSucceeded('server', ended) ? publishedAgain(on) : unpublished(on)),
    ],
  },
]
