import type { Case } from './case.ts'
import { FAULTS, LAST } from './faults.ts'
import { MOUNT_OPTIONS, MOUNT_OPTIONS_WITHOUT } from './mount-options.ts'
import { NAMESPACES } from './namespaces.ts'
import { STARVED } from './starved.ts'
import { VOLUMES } from './volumes.ts'
import { WITHOUT } from './without.ts'

/** Before the plugin is started, and with it. */
export const CASES: { without: readonly Case[]; with: readonly Case[] } = {
  without: [...WITHOUT, ...MOUNT_OPTIONS_WITHOUT],
  with: [...VOLUMES, ...MOUNT_OPTIONS, ...NAMESPACES, ...FAULTS, ...STARVED, ...LAST],
}
