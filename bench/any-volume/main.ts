import { SUITE_RUNTIMES } from '../../scripts/fetch/suite.ts'
import { runAsNode } from '../../test/kubelet/confine/run-as-node.ts'
import { provide } from '../../test/runtimes/provide.ts'
import { HELP, readOptions } from '../options.ts'
import { kubeletWalk } from '../peers/kubelet-build.ts'

/** Measures pods on the newest runtime, in namespaces of its own, and ends this process. */
export function benchAnyVolume(): void {
  runAsNode({
    command: 'bench --any-volume',
    what: 'pods on volumes of another driver',
    machine: 'runtime',
    name: 'modekeep-any-volume-bench',
    module: `${import.meta.dirname}/run.ts`,
    usage: HELP,
    readOptions: (args) => {
      const options = readOptions(args)
      return options.help ? 'help' : options
    },
    provide: (_, clock, say) => ({
      ...provide(SUITE_RUNTIMES.at(-1)?.wanted ?? '', clock),
      walk: clock.measure("kubelet's walk", () => kubeletWalk(say)),
    }),
  })
}
