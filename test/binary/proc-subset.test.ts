import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { cannotMountWith } from '../helpers/needs.ts'
import { makeTree } from '../helpers/tree.ts'

const cannotMount = cannotMountWith()
const WITH_SUBSET = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o subset=pid proc /proc && exec "$@"', '-']

it.skipIf(cannotMount !== '')(
  `a call where /proc shows processes alone names the option${cannotMount && ` (skipped: ${cannotMount})`}`,
  async () => {
    const node = new BinaryNode()
    makeTree(fs, `${node.volumes}/data`, [])
    node.wrapper = WITH_SUBSET
    const options = JSON.stringify({ source: `${node.volumes}/data` })
    expect(await node.call('mount', node.podDirectory('a'), options)).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining('because /proc is mounted with subset=pid: mount /proc without that option'),
    })
    expect(node.layers('a')).toEqual([])
  },
)
