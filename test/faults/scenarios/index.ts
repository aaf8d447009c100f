import { callScenario, type Situation } from '../call-scenario.ts'
import type { ResidentInjector } from '../resident-injector.ts'
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
  situations.map((situation) => ({
    command,
    hasDoor: situation.reader === 'kubelet',
    open: (resident?: ResidentInjector) => callScenario(situation, resident),
  }))

/** Every command in each of its situations. */
export const SCENARIOS: readonly {
  command: CommandName
  /** Whether it is a FlexVolume call, which the loader hands to a resident worker. */
  hasDoor: boolean
  /** @param resident makes the scenario's FlexVolume calls */
  open(resident?: ResidentInjector): Scenario
}[] = [
  ...calls('mount', MOUNT),
  ...calls('unmount', UNMOUNT),
  ...calls('replace', REPLACE),
  ...calls('walk', WALK),
  ...calls('restore', RESTORE),
  ...calls('heal', HEAL),
  ...calls('csi', CSI),
  ...calls('container', CONTAINER_JOBS),
  ...INSTALL.map((open) => ({ command: 'install' as const, hasDoor: false, open: () => open() })),
]
