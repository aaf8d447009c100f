import { runAsNode } from '../kubelet/confine/run-as-node.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'

runAsNode({
  command: 'test:cluster',
  what: 'a cluster of one node',
  machine: 'cluster',
  name: 'modekeep-cluster-test',
  module: `${import.meta.dirname}/run.ts`,
  usage: USAGE,
  readOptions,
  provide: ({ kubernetes }, clock, say) => ({ programs: provide(kubernetes, clock, say) }),
})
