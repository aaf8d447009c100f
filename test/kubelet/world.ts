import type { ContainerRuntime } from '../../scripts/fetch/packages.ts'
import type { Hierarchy } from './confine/cgroups.ts'
import type { Options } from './options.ts'

/** What a run has been given from outside. */
export interface World {
  /** The directory in which everything of the run lies. */
  place: string
  cgroups: Hierarchy[]
  /** The kubelet's executable. */
  kubelet: string
  runtime: ContainerRuntime
  options: Options
}
