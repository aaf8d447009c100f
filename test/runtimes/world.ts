import type { UnpackedSuite } from '../../scripts/fetch/suite.ts'
import type { Hierarchy } from '../kubelet/confine/cgroups.ts'
import type { Options } from './options.ts'

/** What a run has been given from outside. */
export interface World {
  /** The directory in which everything of the run lies. */
  place: string
  cgroups: Hierarchy[]
  /** A static one. */
  busybox: string
  suites: UnpackedSuite[]
  /** Why suites are not among them. */
  lacking: string[]
  options: Options
}

/** What a run on one of the suites has. */
export interface RuntimeWorld {
  /** A directory of its own. */
  place: string
  busybox: string
  suite: UnpackedSuite
  only: string
  /** Where the results go, as JSON. */
  results: string
}
