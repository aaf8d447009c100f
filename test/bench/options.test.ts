import { expect, it } from 'vitest'
import { readOptions } from '../../bench/options.ts'
import { nameOf, treesFor, usual } from '../../bench/trees.ts'

const trees = (...args: string[]) => treesFor(readOptions(args)).map(([use, tree]) => `${use}: ${nameOf(tree)}`)

it("the benchmark option --headline measures a small tree and the targets' tree, with --full also a tree of a million files", () => {
  const names = [10_000, 200_000, 1_000_000].map((files) => `targets: ${nameOf(usual('ext4', files))}`)
  expect(trees('--headline')).toEqual(names.slice(0, 2))
  expect(trees('--headline', '--full')).toEqual(names)
  expect(trees('--headline', '--files', '10000')).toEqual(names.slice(0, 1))
  expect(trees().slice(0, 2)).toEqual(names.slice(0, 2))
})

it('the benchmark measures no tree twice, for any value of --files', () => {
  for (const args of [[], ['--full'], ['--files', '1000'], ['--files', '1000000', '--full']]) {
    const names = trees(...args).map((name) => name.replace(/^\w+: /, ''))
    expect(new Set(names).size, args.join(' ')).toBe(names.length)
  }
})

it('the benchmark option --headline omits parts that no target needs', () => {
  expect(readOptions([]).parts).toEqual(['walks', 'calls', 'system-calls', 'mounts'])
  expect(readOptions(['--headline']).parts).toEqual(['walks', 'calls', 'system-calls'])
  expect(readOptions(['--only', 'mounts,calls']).parts).toEqual(['mounts', 'calls'])
})

it('an invalid option of the benchmark is refused, and the message names the option', () => {
  expect(() => readOptions(['--files', 'many'])).toThrow('--files: expected a whole number from 1 on, got "many"')
  expect(() => readOptions(['--rounds', '0'])).toThrow('--rounds')
  expect(() => readOptions(['--only', 'walks,zfs'])).toThrow(
    '--only: expected walks, calls, system-calls, mounts, got "zfs"',
  )
  expect(() => readOptions(['--quick'])).toThrow('--quick')
})
