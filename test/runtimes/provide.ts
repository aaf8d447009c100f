import { provideBusybox } from '../../scripts/fetch/packages.ts'
import { provideDebianSuite, SUITE_RUNTIMES, type UnpackedSuite } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { Clock } from '../kubelet/report/clock.ts'
import type { World } from './world.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network. A suite that cannot be had is left out, with
 * the reason.
 * @param version of containerd, from its start; '' for all
 * @throws {UnavailableError} where there is none
 */
export function provide(version: string, clock: Clock): Pick<World, 'busybox' | 'suites' | 'lacking'> {
  const { busybox } = clock.measure('busybox', provideBusybox)
  const suites: UnpackedSuite[] = []
  const lacking: string[] = []
  for (const runtime of SUITE_RUNTIMES.filter(({ wanted }) => wanted.startsWith(version))) {
    const what = `containerd ${runtime.wanted} of Debian ${runtime.suite}`
    try {
      suites.push(clock.measure(what, () => provideDebianSuite(runtime)))
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
      lacking.push(`${what}: ${error.message}`)
    }
  }
  if (suites.length === 0) throw new UnavailableError(lacking.join('; ') || `no suite has containerd ${version}`)
  return { busybox, suites, lacking }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide('', new Clock(console.log))
