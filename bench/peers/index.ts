import * as fs from 'node:fs'
import { measureCalls, measureWalks } from '../measure.ts'
import { type Absent, WALKS } from '../results.ts'
import { makeTree } from '../tree.ts'
import { usual } from '../trees.ts'
import { mountVolume } from '../volume.ts'
import { kubeletWalk } from './kubelet-build.ts'
import { modekeepCallers, modekeepMapper, modekeepWalker, Node } from './modekeep.ts'
import { BARE_CALLERS, chgrpWalker, cWalker, findWalker, kubeletWalker, scriptCaller } from './others.ts'
import type { Caller, Walker } from './peer.ts'

export const IN_MEMORY = 'keep, journal in memory'

export interface Peers {
  walkers: Walker[]
  callers: Caller[]
  absent: Absent[]
}

/**
 * Everybody who can be measured here, each tried on a small tree; the others with the reason.
 * @param volumes the directory below which every tree lies
 */
export function findPeers(workDirectory: string, volumes: string, say: (text: string) => void): Peers {
  const node = new Node(`${workDirectory}/node`, volumes)
  const memory = `${workDirectory}/memory`
  mountVolume('tmpfs', memory, 0)
  const walkers: Record<string, () => Walker> = {
    'modekeep idmap': () => modekeepMapper(node),
    'modekeep keep': () => modekeepWalker('modekeep keep', node, 'keep', WALKS),
    'modekeep grant': () => modekeepWalker('modekeep grant', node, 'grant', ['first walk', 'nothing to do']),
    [IN_MEMORY]: () => modekeepWalker(IN_MEMORY, new Node(memory, volumes), 'keep', ['first walk']),
    kubelet: () => kubeletWalker(kubeletWalk(say)),
    'chgrp, chmod': chgrpWalker,
    'C, one thread': () => cWalker(workDirectory),
    'find -printf': findWalker,
  }
  const callers = [...BARE_CALLERS, ...modekeepCallers(node), scriptCaller(`${workDirectory}/script/v`)]
  const subject = { tree: usual('tmpfs', 3), at: `${volumes}/probe`, into: [] }
  const peers: Peers = { walkers: [], callers: [], absent: [] }
  const attempt = (what: string, work: () => void) => {
    try {
      work()
    } catch (error) {
      const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
      peers.absent.push({ what, reason })
    }
  }
  makeTree(subject.at, subject.tree.files)
  for (const [what, make] of Object.entries(walkers)) {
    attempt(what, () => {
      const walker = make()
      measureWalks(subject, [walker], 0)
      peers.walkers.push(walker)
    })
  }
  for (const caller of callers) {
    attempt(caller.name, () => {
      measureCalls(subject, [caller], 1)
      peers.callers.push(caller)
    })
  }
  fs.rmSync(subject.at, { recursive: true })
  return peers
}
