import { provideShell } from '../../scripts/fetch/packages.ts'
import { provideSuite, SUITE_RUNTIMES, type SuiteRoot } from '../../scripts/fetch/suite.ts'
import { Unavailable } from '../../scripts/fetch/unavailable.ts'
import { Clock } from '../kubelet/report/clock.ts'
import type { World } from './world.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network. A suite that cannot be had is left out, with
 * the reason.
 * @param version of containerd, from its start; '' for all
 * @throws {Unavailable} where there is none
 */
export function provide(version: string, clock: Clock): Pick<World, 'busybox' | 'suites' | 'lacking'> {
  const { busybox } = clock.measure('busybox', provideShell)
  const suites: SuiteRoot[] = []
  const lacking: string[] = []
  for (const runtime of SUITE_RUNTIMES.filter(({ wanted }) => wanted.startsWith(version))) {
    const what = `containerd ${runtime.wanted} of Debian ${runtime.suite}`
    try {
      suites.push(clock.measure(what, () => provideSuite(runtime)))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      lacking.push(`${what}: ${error.message}`)
    }
  }
  if (suites.length === 0) throw new Unavailable(lacking.join('; ') || `no suite has containerd ${version}`)
  return { busybox, suites, lacking }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide('', new Clock(console.log))
