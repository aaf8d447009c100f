import { createRandom } from '../helpers/numbers.ts'

/** What a round's pods share, and how they have it mounted. */
export type Kind = 'keep' | 'grant' | 'idmap' | 'bind' | 'sub path' | 'flip' | 'tmpfs' | 'image' | 'fuse'

export type Event =
  | 'call again'
  | 'call again, killed'
  | 'write'
  | 'lose'
  | 'heal'
  | 'heal, killed'
  | 'flip'
  | 'kill daemon'
  | 'stop daemon'

export interface PodPlan {
  name: string
  group: number
  restores: boolean
  policy: 'OnRootMismatch' | 'Always'
  /** Milliseconds after the round's begin. */
  after: number
  /** For the first calls of mount and of unmount: when it is killed, in parts of the time such a call takes. */
  mountKills: number[]
  unmountKills: number[]
  /** Kubelet takes the directory away after a call that was killed, as it does after one that failed. */
  tidies: boolean
  events: { what: Event; kill: number }[]
}

/** All that a round does. */
export interface Scene {
  seed: number
  kind: Kind
  pods: PodPlan[]
}

const WEIGHTS: Readonly<Record<Kind, number>> = {
  keep: 4,
  grant: 3,
  idmap: 2,
  bind: 1,
  'sub path': 2,
  flip: 2,
  tmpfs: 1,
  image: 3,
  fuse: 3,
}

const COMMON: readonly Event[] = ['call again', 'call again, killed', 'write', 'heal', 'heal, killed', 'lose']
const OWN: Partial<Record<Kind, readonly Event[]>> = {
  // What is lost of a tmpfs is lost.
  tmpfs: ['call again', 'call again, killed', 'heal', 'heal, killed'],
  flip: ['flip', 'flip', 'call again', 'call again, killed', 'heal', 'lose'],
  fuse: [...COMMON, 'kill daemon', 'kill daemon', 'kill daemon'],
}

// A daemon that hangs costs its unmount five seconds.
const HANGS = 0.04
const GROUPS = [2000, 3000]

/** What the round of a seed does. Pure. */
export function sceneOf(seed: number): Scene {
  const random = createRandom(seed)
  const chance = (part: number) => random() < part
  const one = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const kind = one(Object.entries(WEIGHTS).flatMap(([name, weight]) => Array<Kind>(weight).fill(name as Kind)))
  const pods = 1 + Math.floor(random() * random() * 4)
  const shared = chance(0.75) ? one(GROUPS) : undefined
  return { seed, kind, pods: Array.from({ length: pods }, (_, index) => pod(index)) }

  function pod(index: number): PodPlan {
    const events = OWN[kind] ?? COMMON
    return {
      name: `${seed}-${index}`,
      group: shared ?? one(GROUPS),
      // What lies in another volume is put back before that.
      restores: kind === 'sub path' || kind === 'image' || chance(0.6),
      policy: chance(0.7) ? 'OnRootMismatch' : 'Always',
      after: random() * 150,
      mountKills: kills(0.4),
      unmountKills: kills(0.35),
      tidies: chance(0.5),
      events: Array.from({ length: Math.floor(random() * 3.5) }, () => ({
        what: kind === 'fuse' && chance(HANGS) ? 'stop daemon' : one(events),
        kill: random() * 1.1,
      })),
    }
  }

  function kills(part: number): number[] {
    return chance(part) ? Array.from({ length: 1 + Math.floor(random() * 3) }, () => random() * 1.1) : []
  }
}
