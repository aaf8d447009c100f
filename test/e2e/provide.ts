import * as fs from 'node:fs'
import { type E2eTestSuite, provideE2eSuite } from '../../scripts/fetch/kubernetes-e2e.ts'
import type { Programs } from '../cluster/programs.ts'
import { provide as providePrograms } from '../cluster/provide.ts'
import { Clock } from '../kubelet/report/clock.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network.
 * @param directory has programs of another version; '' for those that are built
 * @throws {Error} with the last words of what failed, or what the directory lacks
 */
export function provide(
  directory: string,
  clock: Clock,
  say: (text: string) => void,
): { programs: Programs; suite: E2eTestSuite } {
  const programs = providePrograms(directory, clock, say)
  if (directory === '') return { programs, suite: clock.measure('e2e.test and agnhost', () => provideE2eSuite(say)) }
  const suite: E2eTestSuite = { 'e2e.test': `${directory}/e2e.test`, agnhost: `${directory}/agnhost` }
  for (const path of Object.values(suite)) if (!fs.existsSync(path)) throw new Error(`--kubernetes: no ${path}`)
  return { programs, suite }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide('', new Clock(console.log), console.log)
