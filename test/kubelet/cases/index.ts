import type { Case } from './case.ts'
import { CLUSTER } from './cluster.ts'
import { DELETION } from './deletion.ts'
import { FLIPPED } from './flipped.ts'
import { FUSE } from './fuse.ts'
import { KILLED_WALK } from './killed-walk.ts'
import { PODS_VIEW } from './pods-view.ts'
import { RESTARTS } from './restarts.ts'
import { SOURCE } from './source.ts'
import { TWO_GROUPS } from './two-groups.ts'

/** Every case, in the order of the table. */
export const CASES: readonly Case[] = [
  ...RESTARTS,
  ...DELETION,
  ...KILLED_WALK,
  ...PODS_VIEW,
  ...TWO_GROUPS,
  ...FLIPPED,
  ...FUSE,
  ...SOURCE,
  ...CLUSTER,
]
