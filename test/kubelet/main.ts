import { NAME } from './confine/cgroups.ts'
import { runAsNode } from './confine/run-as-node.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'

runAsNode({
  command: 'test:kubelet',
  what: 'pods of a real kubelet',
  machine: 'kubelet',
  name: NAME,
  module: `${import.meta.dirname}/run.ts`,
  usage: USAGE,
  readOptions,
  provide: (_, clock, say) => provide(clock, say),
})
