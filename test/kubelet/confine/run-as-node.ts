import { UnavailableError } from '../../../scripts/fetch/unavailable.ts'
import { exitAfterRun } from '../../helpers/command-exit.ts'
import { Clock } from '../report/clock.ts'
import { obstacles } from './able.ts'
import { hierarchies } from './cgroups.ts'
import { confined } from './confined.ts'

/** A command that runs the programs of a node. */
export interface NodeRun<Options> {
  /** As npm has it. */
  command: string
  /** What a greater run goes without where a machine cannot do it. */
  what: string
  /** What cannot be run there. */
  machine: 'kubelet' | 'cluster' | 'runtime'
  /** One run at a time has this name. */
  name: string
  /** The module whose `run` is called inside, with the world. */
  module: string
  usage: string
  /** @throws {Error} which option is wrong */
  readOptions(args: readonly string[]): Options | 'help'
  /** Fills the cache: inside there is no network. @returns what the world has of this run beside its place and options */
  provide(options: Options, clock: Clock, say: (text: string) => void): object
}

/** Runs it as a machine of its own and ends this process: 0 all passed, 1 not all, 2 wrong usage or not possible here. */
export function runAsNode<Options>(run: NodeRun<Options>): void {
  exitAfterRun(started(run), run.command, run.what)
}

async function started<Options>(run: NodeRun<Options>): Promise<number> {
  const options = run.readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(run.usage)
    return 0
  }
  const cgroups = hierarchies(run.name)
  const why = obstacles(cgroups)
  if (why.length > 0) throw new UnavailableError(`no ${run.machine} can be run here: ${why.join('; ')}`)
  const say = (text: string) => console.log(text)
  const given = run.provide(options, new Clock(say), say)
  // For any TMPDIR: one run at a time has it.
  const place = `/tmp/${run.name}`
  return confined(run.module, { place: `${place}/node`, cgroups, ...given, options }, place, cgroups)
}
