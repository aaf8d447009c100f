import * as fs from 'node:fs'
import { makeTree } from '../helpers/tree.ts'

/** What a pod's user does to a source, and all that may come of resolving `subPath` meanwhile. */
export interface Race {
  name: string
  /** Of exchange.c; these paths and those of `found` are below the arena, the source is its `data`. */
  actor: readonly [how: 'exchange' | 'move', from: string, to: string]
  subPath: string
  /** Inodes of the source before it all begins: nothing else may be found. */
  found: readonly string[]
  refused: RegExp
}

const LEAVES = /^subPath ".*" leads out of the source through the link /
const MISSING = /^subPath ".*" is not in the source: ".*" does not exist/

export const RACES: readonly Race[] = [
  {
    name: 'a directory exchanged for a link out',
    actor: ['exchange', 'data/a', 'data/to-outside'],
    subPath: 'a/b/f',
    found: ['data/a/b/f'],
    refused: LEAVES,
  },
  {
    name: 'a directory below a link exchanged for an absolute link out',
    actor: ['exchange', 'data/a/b', 'data/to-outside-b'],
    subPath: 'in/b/f',
    found: ['data/a/b/f'],
    refused: LEAVES,
  },
  {
    name: 'a link exchanged for one that leads out',
    actor: ['exchange', 'data/in', 'data/to-outside'],
    subPath: 'in/b',
    found: ['data/a/b'],
    refused: LEAVES,
  },
  {
    name: 'a file exchanged for a link to a file outside',
    actor: ['exchange', 'data/f', 'data/to-secret'],
    subPath: 'f',
    found: ['data/f'],
    refused: LEAVES,
  },
  {
    name: 'an absolute link into the source exchanged for one that leads out',
    actor: ['exchange', 'data/absolute', 'data/to-outside'],
    subPath: 'absolute/b/f',
    found: ['data/a/b/f'],
    refused: LEAVES,
  },
  {
    name: 'a directory moved out and back, over a link up from within it',
    actor: ['move', 'data/deep/m', 'sibling/m'],
    subPath: 'deep/m/n/up/f',
    found: ['data/up/f'],
    refused: MISSING,
  },
  {
    name: 'a directory moved to the top and back, over a link up from within it',
    actor: ['exchange', 'data/deep/m/n', 'data/n'],
    subPath: 'deep/m/n/up/f',
    found: ['data/up/f'],
    refused: MISSING,
  },
  {
    name: 'the data link of an atomic writer exchanged for a link out',
    actor: ['exchange', 'data/..data', 'data/to-outside'],
    subPath: 'key',
    found: ['data/..1/key'],
    refused: LEAVES,
  },
]

/** A source, and around it the targets that an escape would reach. */
export function makeArena(top: string): string {
  const arena = `${top}/arena`
  makeTree(fs, arena, ['file outside/b/f 0600', 'file outside/key 0600', 'file outside/secret 0600'])
  makeTree(fs, arena, ['dir sibling 0755', 'file up/f 0600'])
  makeTree(fs, `${arena}/data`, [
    'file a/b/f 0644',
    'file f 0644',
    'link in a',
    `link absolute ${arena}/data/a`,
    'link to-outside ../outside',
    `link to-outside-b ${arena}/outside/b`,
    'link to-secret ../outside/secret',
    'file up/f 0644',
    'link deep/m/n/up ../../../up',
    'link n/up ../../up',
    'file ..1/key 0644',
    'link ..data ..1',
    'link key ..data/key',
  ])
  return arena
}
