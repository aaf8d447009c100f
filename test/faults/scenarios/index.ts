import { callScenario, type Situation } from '../call-scenario.ts'
import type { CommandName, Scenario } from '../scenario.ts'
import { CONTAINER_JOBS } from './container.ts'
import { CSI } from './csi.ts'
import { HEAL } from './heal.ts'
import { INSTALL } from './install.ts'
import { MOUNT } from './mount.ts'
import { REPLACE } from './replace.ts'
import { RESTORE } from './restore.ts'
import { UNMOUNT } from './unmount.ts'
import { WALK } from './walk.ts'

const calls = (command: CommandName, situations: readonly Situation[]) =>
  situations.map((situation) => ({ command, open: () => callScenario(situation) }))

/** Every command in each of its situations. */
export const SCENARIOS: readonly { command: CommandName; open(): Scenario }[] = [
  ...calls('mount', MOUNT),
  ...calls('unmount', UNMOUNT),
  ...calls('replace', REPLACE),
  ...calls('walk', WALK),
  ...calls('restore', RESTORE),
  ...calls('heal', HEAL),
  ...calls('csi', CSI),
  ...calls('container', CONTAINER_JOBS),
  ...INSTALL.map((open) => ({ command: 'install' as const, open })),
]
