import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { type Cost, compile, measured } from '../command.ts'
import { type Access, GROUP, UNTOUCHED } from '../tree.ts'
import { type Caller, mountOptions, type Walker } from './peer.ts'

const KUBELETS_MASKS = { group: GROUP, file: 0o660, directory: 0o2770 }

/** The same walk, whether there is something to do or not. */
function walker(name: string, access: Access, walk: (tree: string) => Cost): Walker {
  return { name, access, walks: { 'first walk': walk, 'nothing to do': walk } }
}

/** @param binary what `kubeletWalk` built: it says itself how long the walk took, as kubelet starts no process for it */
export function kubeletWalker(binary: string): Walker {
  return walker('kubelet', KUBELETS_MASKS, (tree) => {
    const { cost, stdout } = measured(binary, [tree, `${GROUP}`])
    return { ...cost, wall: Number(stdout) / 1e6 }
  })
}

export function chgrpWalker(): Walker {
  // No set-gid on directories: chmod would give it to files as well.
  const access = { group: GROUP, file: 0o060, directory: 0o070 }
  const commands = `chgrp -R ${GROUP} "$0" && chmod -R g+rwX "$0"`
  return walker('chgrp, chmod', access, (tree) => measured('sh', ['-c', commands, tree]).cost)
}

/** Compiles the walk into `directory`. */
export function cWalker(directory: string): Walker {
  const binary = `${directory}/walk`
  compile(resolve(import.meta.dirname, 'walk.c'), binary)
  return walker('C, one thread', KUBELETS_MASKS, (tree) => measured(binary, [tree, `${GROUP}`]).cost)
}

/** What a survey reads of each inode. */
export function findWalker(): Walker {
  const print = ['-fprintf', '/dev/null', '%y %m %U %G %n %i %p\\n']
  const survey = (tree: string) => measured('find', [tree, ...print]).cost
  return { name: 'find -printf', access: UNTOUCHED, walks: { survey } }
}

export function scriptCaller(directory: string): Caller {
  const script = resolve(import.meta.dirname, 'flexvolume.sh')
  const call = (...args: string[]) => {
    const { cost, stdout } = measured('/bin/bash', [script, ...args])
    const reply = JSON.parse(stdout)
    if (reply.status !== 'Success') throw new Error(reply.message)
    return cost
  }
  return {
    name: 'bash+jq, repeated mount',
    call(tree) {
      fs.mkdirSync(directory, { recursive: true })
      return call('mount', directory, mountOptions(tree))
    },
    finish: () => void call('unmount', directory),
  }
}

/** The Node that modekeep contains, and what starting any process costs here. */
export const BARE_CALLERS: readonly Caller[] = [
  { name: 'node -e 0', call: () => measured(process.execPath, ['-e', '0'], { env: {} }).cost },
  { name: 'true', call: () => measured('/bin/true', []).cost },
]
