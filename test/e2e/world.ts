import type { E2eTestSuite } from '../../scripts/fetch/kubernetes-e2e.ts'
import type { World as OfCluster } from '../cluster/world.ts'
import type { Options } from './options.ts'

/** What a run has been given from outside. */
export interface World extends OfCluster {
  suite: E2eTestSuite
  options: Options
}
