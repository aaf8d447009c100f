import type { StandaloneNode } from '../node/node.ts'
import type { Case } from './case.ts'
import { CLUSTER } from './cluster.ts'
import { DELETION } from './deletion.ts'
import { FLIPPED, UNWATCHED } from './flipped.ts'
import { FUSE } from './fuse.ts'
import { KILLED_WALK } from './killed-walk.ts'
import { PODS_VIEW } from './pods-view.ts'
import { RESTARTS } from './restarts.ts'
import { METRICS, OF_THE_NODE } from './source.ts'
import { TWO_GROUPS } from './two-groups.ts'

/** On any node, in the order of the table. */
export const ANYWHERE: readonly Case[] = [
  ...RESTARTS,
  ...DELETION,
  ...KILLED_WALK,
  ...PODS_VIEW,
  ...TWO_GROUPS,
  ...FLIPPED,
  ...FUSE,
  ...METRICS,
]

/** Where nothing but the case installs, configures or heals. */
export const CASES: readonly Case<StandaloneNode>[] = [...ANYWHERE, ...UNWATCHED, ...OF_THE_NODE, ...CLUSTER]
