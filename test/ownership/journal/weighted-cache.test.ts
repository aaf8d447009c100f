import { expect, it } from 'vitest'
import { WeightedCache } from '../../../src/ownership/journal/weighted-cache.ts'

it('a weighted cache keeps its newest entries up to its maximum weight', () => {
  const recent = new WeightedCache<string, number>(20)
  recent.put('a', 1, 5)
  recent.put('b', 2, 5)
  expect([recent.get('a'), recent.get('b'), recent.get('c')]).toEqual([1, 2, undefined])
  recent.put('c', 3, 5)
  expect([recent.size, [...recent.values()]]).toEqual([3, [1, 2, 3]])
  recent.put('b', 4, 5)
  expect([recent.get('b'), [...recent.values()]]).toEqual([4, [1, 3, 4]])
  recent.put('d', 5, 1)
  expect([recent.get('a'), [...recent.values()]]).toEqual([undefined, [3, 4, 5]])
  recent.delete('c')
  recent.delete('c')
  recent.delete('d')
  expect([...recent.values()]).toEqual([4])
  recent.put('e', 6, 10)
  expect([...recent.values()]).toEqual([4, 6])
  recent.put('heavy', 7, 11)
  expect([recent.get('heavy'), ...recent.values()]).toEqual([undefined, 4, 6])
  recent.clear()
  recent.put('f', 8, 10)
  expect([...recent.values()]).toEqual([8])
})

it('the cost of an insertion into a weighted cache does not depend on the number of its entries', () => {
  const recent = new WeightedCache<number, number>(100_000)
  const begun = process.cpuUsage().user
  for (let at = 0; at < 500_000; at++) recent.put(at, at, 1)
  expect([recent.get(499_999), recent.get(450_000), recent.get(399_999)]).toEqual([499_999, 450_000, undefined])
  expect(process.cpuUsage().user - begun).toBeLessThan(5_000_000)
})
