import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { run } from '../../scripts/fetch/command.ts'
import { timed } from '../command.ts'
import { GROUP } from '../tree.ts'
import { type Driver, mountOptions, type Walker } from './peer.ts'

const KUBELETS_MASKS = { group: GROUP, file: 0o660, directory: 0o2770 }
const nothing = () => {}

/** @param binary what `kubeletWalk` built */
export function kubeletWalker(binary: string): Walker {
  const walk = (tree: string) => Number(run(binary, [tree, String(GROUP)])) / 1e6
  return { name: 'kubelet', access: KUBELETS_MASKS, walk, finish: nothing }
}

export function chgrpWalker(): Walker {
  const walk = (tree: string) =>
    timed(() => {
      run('chgrp', ['-R', String(GROUP), tree])
      run('chmod', ['-R', 'g+rwX', tree])
    })
  // No set-gid on directories: chmod would give it to files as well.
  return { name: 'chgrp, chmod', access: { group: GROUP, file: 0o060, directory: 0o070 }, walk, finish: nothing }
}

/** Compiles the walk into `directory`. */
export function cWalker(directory: string): Walker {
  const binary = `${directory}/walk`
  run('cc', ['-O2', '-Wall', '-o', binary, resolve(import.meta.dirname, 'walk.c')])
  const walk = (tree: string) => timed(() => run(binary, [tree, String(GROUP)]))
  return { name: 'C, one thread', access: KUBELETS_MASKS, walk, finish: nothing }
}

export function scriptDriver(directory: string): Driver {
  const script = resolve(import.meta.dirname, 'flexvolume.sh')
  const call = (...args: string[]) => {
    const reply = JSON.parse(run('/bin/bash', [script, ...args]))
    if (reply.status !== 'Success') throw new Error(reply.message)
  }
  return {
    name: 'bash+jq driver',
    mount(tree) {
      fs.mkdirSync(directory, { recursive: true })
      const json = mountOptions(tree)
      return timed(() => call('mount', directory, json))
    },
    unmount: () => call('unmount', directory),
  }
}

/** What starting a process costs here: it is in the time of every other call. */
export function bareProcess(): Driver {
  return { name: 'true (a process)', mount: () => timed(() => run('true', [])), unmount: nothing }
}
