import { expect, it } from 'vitest'
import { readOptions } from '../../bench/options.ts'

it('sizes are ascending and named once; --full adds a million', () => {
  expect(readOptions(['--sizes', '500,20,500', '--full']).sizes('ext4')).toEqual([20, 500, 1_000_000])
})

it('the largest default size is for ext4 alone', () => {
  expect(readOptions([]).sizes('ext4')).toEqual([1000, 10_000, 100_000, 200_000])
  expect(readOptions([]).sizes('xfs')).toEqual([1000, 10_000, 100_000])
})

it('what is not understood is refused by its name', () => {
  expect(() => readOptions(['--sizes', '1000,many'])).toThrow('--sizes: expected whole numbers from 1 on, got "many"')
  expect(() => readOptions(['--rounds', '0'])).toThrow('--rounds')
  expect(() => readOptions(['--fs', 'ext4,zfs'])).toThrow('--fs: expected ext4, tmpfs, xfs, got "zfs"')
  expect(() => readOptions(['--quick'])).toThrow('--quick')
})
