import type { Case } from './case.ts'
import { DAEMON_SET } from './daemon-set.ts'
import { DOORS } from './doors.ts'
import { ENDS } from './ends.ts'
import { GROUPS } from './groups.ts'
import { PLANE_AWAY } from './plane-away.ts'
import { REBOOT } from './reboot.ts'
import { REMOVED } from './removed.ts'
import { RESTARTS } from './restarts.ts'
import { UNTOUCHED } from './untouched.ts'

export const CASES: readonly Case[] = [
  ...DOORS,
  ...UNTOUCHED,
  ...GROUPS,
  ...ENDS,
  ...RESTARTS,
  ...PLANE_AWAY,
  ...REBOOT,
  ...REMOVED,
  ...DAEMON_SET,
]
