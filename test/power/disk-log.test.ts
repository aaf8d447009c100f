import { describe, expect, it } from 'vitest'
import { type DiskEvent, type KeptWrites, listDurableWrites, OverlaidDisk } from './disk-log.ts'
import { chooseMoments, selectMomentNumbers } from './moments.ts'

const write = (disk: string, text: string): DiskEvent => ({ disk, offset: 0, data: Buffer.from(text) })
const flush = (disk: string): DiskEvent => ({ disk, isFlush: true })

const EVENTS = [write('a', '1'), write('b', '2'), flush('a'), write('a', '3'), flush('b'), write('b', '4')]

function listTexts(disk: string, index: number, kept: KeptWrites, random = () => 0.9): string[] {
  return listDurableWrites(EVENTS, disk, { index, kept: { [disk]: kept } }, random).map(({ data }) => data.toString())
}

describe('the durable writes of a disk', () => {
  it('are those before its last flush, if the power cut loses all others', () => {
    expect(listTexts('a', 2, 'none')).toEqual([])
    expect(listTexts('a', 3, 'none')).toEqual(['1'])
    expect(listTexts('a', 6, 'none')).toEqual(['1'])
    expect(listTexts('b', 4, 'none')).toEqual([])
    expect(listTexts('b', 6, 'none')).toEqual(['2'])
  })

  it('are all earlier ones, if the power cut loses none', () => {
    expect(listTexts('a', 4, 'all')).toEqual(['1', '3'])
    expect(listTexts('b', 5, 'all')).toEqual(['2'])
  })

  it('include an unflushed one by chance, if the power cut loses a half', () => {
    expect(listTexts('a', 4, 'half', () => 0.9)).toEqual(['1'])
    expect(listTexts('a', 4, 'half', () => 0.1)).toEqual(['1', '3'])
  })
})

describe('a disk of an image and later writes', () => {
  it('has what an ordinary disk has, whatever the offsets and lengths of its writes', () => {
    const image = Buffer.from(Array.from({ length: 5 * 4096 }, (_, at) => at % 251))
    const disk = new OverlaidDisk((offset, length) => {
      const bytes = Buffer.alloc(length)
      image.copy(bytes, 0, offset, offset + length)
      return bytes
    })
    const wanted = Buffer.from(image)
    for (const [offset, length] of [
      [0, 4096],
      [4000, 200],
      [4096 + 512, 512],
      [4096 + 600, 9000],
      [3 * 4096, 2 * 4096],
    ] as const) {
      const data = Buffer.alloc(length, offset % 256)
      disk.write(offset, data)
      data.copy(wanted, offset)
      for (const [from, bytes] of [
        [0, image.length],
        [4090, 20],
        [8192, 4096],
        [5000, 7000],
      ] as const) {
        expect(disk.read(from, bytes)).toEqual(wanted.subarray(from, from + bytes))
      }
    }
  })
})

describe('the chosen moments', () => {
  const log = { events: 50, flushes: [3, 20] }

  it('begin with those before and after each flush and the end, then are random ones', () => {
    const indexes = chooseMoments(20, log, ['a'], 1).map(({ index }) => index)
    expect(indexes).toHaveLength(20)
    expect(indexes.slice(0, 5).sort((a, b) => a - b)).toEqual([3, 4, 20, 21, 50])
    for (const index of indexes) expect(index).toBeLessThanOrEqual(50)
  })

  it('are the same for the same seed', () => {
    expect(chooseMoments(20, log, ['a'], 5)).toEqual(chooseMoments(20, log, ['a'], 5))
    expect(chooseMoments(20, log, ['a'], 5)).not.toEqual(chooseMoments(20, log, ['a'], 6))
  })

  it('of two disks have each pair of kept writes', () => {
    const pairs = chooseMoments(9, log, ['a', 'b'], 1).map(({ kept }) => `${kept.a} ${kept.b}`)
    expect(new Set(pairs).size).toBe(9)
  })

  it('are those of the range that is set', () => {
    expect(selectMomentNumbers(3, undefined)).toEqual([1, 2, 3])
    expect(selectMomentNumbers(9, '4-6')).toEqual([4, 5, 6])
    expect(() => selectMomentNumbers(9, '4')).toThrow('MODEKEEP_TEST_MOMENTS wants a range')
  })
})
