import { runAsNode } from '../kubelet/confine/run-as-node.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'

runAsNode({
  command: 'test:nri',
  what: 'containers of runtimes that ask plugins',
  machine: 'runtime',
  name: 'modekeep-nri-test',
  module: `${import.meta.dirname}/run.ts`,
  usage: USAGE,
  readOptions,
  provide: ({ containerd }, clock) => provide(containerd, clock),
})
