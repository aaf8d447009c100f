import { ANY_VOLUME } from './any-volume.ts'
import { ANY_VOLUME_AWAY } from './any-volume-away.ts'
import { ANY_VOLUME_POLICY } from './any-volume-policy.ts'
import type { Case } from './case.ts'
import { CONFIGURATION } from './configuration.ts'
import { DAEMON_SET } from './daemon-set.ts'
import { DOORS } from './doors.ts'
import { ENDS } from './ends.ts'
import { EXAMPLES } from './examples.ts'
import { GROUPS } from './groups.ts'
import { HELM } from './helm.ts'
import { INLINE_BY_LABEL } from './inline-by-label.ts'
import { LEFT } from './left.ts'
import { PLANE_AWAY } from './plane-away.ts'
import { PLUGIN } from './plugin.ts'
import { POD_SECURITY } from './pod-security.ts'
import { REBOOT } from './reboot.ts'
import { REMOVED } from './removed.ts'
import { RESTARTS } from './restarts.ts'
import { UNTOUCHED } from './untouched.ts'
import { USER_NAMESPACES } from './user-namespaces.ts'

export const CASES: readonly Case[] = [
  ...DOORS,
  ...UNTOUCHED,
  ...GROUPS,
  ...ENDS,
  ...POD_SECURITY,
  ...INLINE_BY_LABEL,
  ...USER_NAMESPACES,
  ...ANY_VOLUME_POLICY,
  ...ANY_VOLUME,
  ...ANY_VOLUME_AWAY,
  ...EXAMPLES,
  ...PLUGIN,
  ...RESTARTS,
  ...LEFT,
  ...PLANE_AWAY,
  ...REBOOT,
  ...REMOVED,
  ...DAEMON_SET,
  ...CONFIGURATION,
  ...HELM,
]
