import { runAsNode } from '../kubelet/confine/run-as-node.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'

runAsNode({
  command: 'test:e2e',
  what: "Kubernetes' own storage tests",
  machine: 'cluster',
  name: 'modekeep-e2e-test',
  module: `${import.meta.dirname}/run.ts`,
  usage: USAGE,
  readOptions,
  provide: ({ kubernetes }, clock, say) => provide(kubernetes, clock, say),
})
