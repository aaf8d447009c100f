import * as fs from 'node:fs'
import type { Absent } from '../results.ts'
import { checkTree, makeTree, resetTree } from '../tree.ts'
import { kubeletWalk } from './kubelet-build.ts'
import { modekeepDriver, modekeepMapper, modekeepWalker, Node } from './modekeep.ts'
import { bareProcess, chgrpWalker, cWalker, kubeletWalker, scriptDriver } from './others.ts'
import type { Driver, Walker } from './peer.ts'

export interface Peers {
  walkers: Walker[]
  drivers: Driver[]
  absent: Absent[]
}

/**
 * Everybody who can be measured here, each tried on a small tree; the others with the reason.
 * @param volumes the directory below which every tree lies
 */
export function findPeers(workDirectory: string, volumes: string, say: (text: string) => void): Peers {
  const node = new Node(`${workDirectory}/node`, volumes)
  const tree = `${volumes}/probe`
  makeTree(tree, 3)
  const peers: Peers = { walkers: [], drivers: [], absent: [] }
  const offer = (what: string, make: () => void) => {
    try {
      make()
    } catch (error) {
      const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
      peers.absent.push({ what, reason })
    }
  }
  const walker = (what: string, make: () => Walker) => offer(what, () => peers.walkers.push(tried(make(), tree)))
  const driver = (what: string, make: () => Driver) => offer(what, () => peers.drivers.push(mounted(make(), tree)))
  walker('modekeep keep', () => modekeepWalker(node, 'keep'))
  walker('modekeep grant', () => modekeepWalker(node, 'grant'))
  walker('modekeep idmap', () => modekeepMapper(node))
  walker('kubelet', () => kubeletWalker(kubeletWalk(say)))
  walker('chgrp, chmod', chgrpWalker)
  walker('C, one thread', () => cWalker(workDirectory))
  driver('modekeep, repeated mount', () => modekeepDriver(node))
  driver('bash+jq driver', () => scriptDriver(`${workDirectory}/script/v`))
  driver('true', bareProcess)
  fs.rmSync(tree, { recursive: true })
  return peers
}

function tried(walker: Walker, tree: string): Walker {
  resetTree(tree)
  walker.walk(tree)
  walker.finish()
  checkTree(tree, walker.access)
  return walker
}

function mounted(driver: Driver, tree: string): Driver {
  driver.mount(tree)
  driver.mount(tree)
  driver.unmount()
  return driver
}
