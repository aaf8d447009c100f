import * as fs from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Handle } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { parseKubeletSubPaths } from '../../src/kernel/mount-table/kubelet-volume.ts'
import { parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { createLocationFinder } from '../../src/kernel/mount-table/tree-location.ts'
import { onKernelStages } from '../helpers/stage.ts'
import { corpus } from './corpus.ts'
import { holds } from './holds.ts'
import { asText, byteRows, kernelText } from './mountinfo-texts.ts'
import { anyText, damaged } from './texts.ts'

/** Asserts what holds for any text: it is parsed, or the faulty line is quoted, and every query returns. */
function expectPromises(text: string): void {
  let rows: ReturnType<typeof parseMountinfo>
  try {
    rows = parseMountinfo(text)
  } catch (error) {
    const lines = text.split('\n').map((line) => `mountinfo line not understood: ${JSON.stringify(line)}`)
    expect(lines).toContain((error as Error).message)
    return
  }
  const locationOf = createLocationFinder(text)
  for (const { mountPoint } of [...rows, { mountPoint: '/nowhere/a' }]) {
    const layers = selectMountLayers(rows, mountPoint)
    expect(layers.every((layer) => layer.mountPoint === mountPoint)).toBe(true)
    const place = locationOf(mountPoint)
    if (place) expect(rows.map(({ device }) => device)).toContain(place.device)
  }
  for (const found of parseKubeletSubPaths(text, '/var/lib/kubelet')) expect(rows).toContainEqual(found.row)
}

describe('any mount table', () => {
  it.each(corpus('mountinfo'))('is parsed or refused with the invalid line quoted: %s', (_name, content) => {
    expectPromises(content.toString())
  })

  it('of the kernel is parsed to its rows, with any bytes in names', () => {
    holds(
      byteRows,
      (rows) => {
        expect(parseMountinfo(kernelText(rows).toString())).toEqual(rows.map(asText))
      },
      2000,
    )
  })

  it('is searched without an endless loop, even if mounts name each other as parents', () => {
    const sameId = fc
      .tuple(byteRows, fc.boolean())
      .map(([rows, flat]) => rows.map((row) => (flat ? { ...row, mountPoint: Buffer.from('/') } : row)))
    holds(sameId, (rows) => expectPromises(kernelText(rows).toString()), 2000)
  })

  it('that is damaged is parsed or refused with the invalid line quoted', () => {
    const table = byteRows.map((rows) => kernelText(rows).toString())
    holds(fc.oneof(damaged(table), anyText), expectPromises, 2000)
  })
})

onKernelStages('mount points in the mount table', (open) => {
  it('mount points in the mount table have the names that the kernel reports, with any bytes', () => {
    const stage = open()
    onTestFinished(() => stage.close())
    const { inodes, mounts } = linuxHost
    const parent = inodes.openTrusted(stage.top)
    onTestFinished(() => inodes.close(parent))
    const SLASH = 0x2f
    const names = fc
      .oneof(
        fc.uint8Array({ min: 1, max: 255, minLength: 1, maxLength: 30 }),
        fc.array(fc.constantFrom(0x20, 0x09, 0x0a, 0x5c, 0x30, 0x34, 0x31, 0x23), { minLength: 1, maxLength: 12 }),
      )
      .map((bytes) => Buffer.from(bytes).map((byte) => (byte === SLASH ? 0x5c : byte)))
      .map((bytes) => Buffer.concat([Buffer.from('m'), bytes]))
    holds(
      names,
      (name) => {
        inodes.createDirectory(parent, name, 0o755)
        let tree: Handle | undefined
        const target = inodes.openEntry(parent, name)
        try {
          tree = mounts.createTree('tmpfs', ['size=4k'])
          mounts.attach(tree, target)
          const id = mounts.tableId(tree)
          const row = parseMountinfo(mounts.table()).find((one) => one.id === id)
          const path = `${stage.top}/${name.toString()}`
          expect(row?.mountPoint).toBe(path)
          // Valid UTF-8: what it reads as leads there.
          if (!path.includes('\ufffd')) expect(fs.statSync(path).dev).toBe(Number(inodes.stat(tree).device))
          expect(selectMountLayers(parseMountinfo(mounts.table()), path)).toContainEqual(row)
        } finally {
          inodes.close(target)
          if (tree !== undefined) {
            mounts.detach(parent, name)
            inodes.close(tree)
          }
          inodes.removeDirectory(parent, name)
        }
      },
      100,
    )
  })
})
