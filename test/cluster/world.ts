import type { Hierarchy } from '../kubelet/confine/cgroups.ts'
import type { Options } from './options.ts'
import type { Programs } from './programs.ts'

/** What a run has been given from outside. */
export interface World {
  /** The directory in which everything of the run lies. */
  place: string
  cgroups: Hierarchy[]
  programs: Programs
  options: Options
}
