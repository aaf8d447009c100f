import type { Case } from './case.ts'
import { DAEMON_SET } from './daemon-set.ts'
import { DOORS } from './doors.ts'
import { GROUPS } from './groups.ts'
import { RESTARTS } from './restarts.ts'

export const CASES: readonly Case[] = [...DOORS, ...GROUPS, ...RESTARTS, ...DAEMON_SET]
