import { expect, it } from 'vitest'
import { parseListenAddress } from '../../../src/cli/commands/options.ts'

it.each([
  [':9808', { address: undefined, port: 9808 }],
  ['127.0.0.1:1', { address: '127.0.0.1', port: 1 }],
  ['[::1]:65535', { address: '::1', port: 65_535 }],
  ['9808', undefined],
  [':0', undefined],
  [':65536', undefined],
  ['::1:80', undefined],
  ['[zz]:80', undefined],
  ['[1::2::3]:80', undefined],
  ['256.0.0.1:80', undefined],
  ['localhost:80', undefined],
  ['', undefined],
])('the listen address is parsed from: %s', (text, where) => {
  expect(parseListenAddress(text)).toEqual(where)
})
