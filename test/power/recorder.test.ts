import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { PowerNode } from './power-node.ts'

const skipped = cannotMountWith('mkfs.ext4', 'setpriv')

const hash = (file: string) => createHash('sha256').update(fs.readFileSync(file)).digest('hex')

async function startNode(): Promise<PowerNode> {
  const node = new PowerNode('ext4', 'another disk')
  onTestFinished(() => node.stop())
  await node.makeDisks()
  node.sync()
  return node
}

const cut = (index: number, kept: 'none' | 'all') => ({
  index,
  kept: { 'volume.img': kept, 'state.img': kept },
  seed: 1,
})

it.skipIf(skipped !== '')(addSkipReason('an fsync on a recorded disk arrives as a flush', skipped), async () => {
  const node = await startNode()
  const { events, flushes } = node.recorder.run({ do: 'begin' })
  expect([events, flushes]).toEqual([0, []])
  const file = fs.openSync(`${node.volumes}/file`, 'w')
  fs.writeSync(file, 'text')
  expect(node.recorder.run({ do: 'status' }).flushes).toEqual([])
  fs.fsyncSync(file)
  fs.closeSync(file)
  const after = node.recorder.run({ do: 'end' })
  expect(after.flushes.length).toBeGreaterThan(0)
  expect(after.events).toBeGreaterThan(after.flushes.length)
})

it.skipIf(skipped !== '')(
  addSkipReason('a disk after all events of its log is the disk at the end of the recording', skipped),
  async () => {
    const node = await startNode()
    node.recorder.run({ do: 'begin' })
    for (let n = 0; n < 50; n++) fs.writeFileSync(`${node.volumes}/file-${n}`, 'x'.repeat(n * 100))
    node.unmountDisks()
    const recorded = node.disks.map(({ name }) => hash(`${node.top}/served/${name}`))
    const { events } = node.recorder.run({ do: 'end' })
    node.recorder.run({ do: 'show', cut: cut(0, 'none') })
    expect(node.disks.map(({ name }) => hash(`${node.top}/served/${name}`))).not.toEqual(recorded)
    node.recorder.run({ do: 'show', cut: cut(events, 'all') })
    expect(node.disks.map(({ name }) => hash(`${node.top}/served/${name}`))).toEqual(recorded)
  },
)

it.skipIf(skipped !== '')(
  addSkipReason('a file that was not synced is lost in a power cut, and a file that was synced is not', skipped),
  async () => {
    const node = await startNode()
    node.recorder.run({ do: 'begin' })
    for (const name of ['synced', 'unsynced']) {
      const file = fs.openSync(`${node.volumes}/${name}`, 'w')
      fs.writeSync(file, name)
      if (name === 'synced') fs.fsyncSync(file)
      fs.closeSync(file)
    }
    const { events } = node.recorder.run({ do: 'end' })
    node.rebootAfter(cut(events, 'none'))
    expect(fs.readdirSync(node.volumes)).toEqual(['lost+found', 'synced'])
    expect(fs.readFileSync(`${node.volumes}/synced`, 'utf8')).toBe('synced')
  },
)
