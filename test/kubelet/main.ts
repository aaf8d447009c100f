import { Unavailable } from '../../scripts/fetch/unavailable.ts'
import { closeWith, TALLY_FILE } from '../helpers/tally.ts'
import { obstacles } from './confine/able.ts'
import { hierarchies } from './confine/cgroups.ts'
import { confined } from './confine/confined.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'
import { Clock } from './report/clock.ts'

// Whatever TMPDIR is: one run at a time has it.
const PLACE = '/tmp/modekeep-kubelet-test'

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  const cgroups = hierarchies()
  const why = obstacles(cgroups)
  if (why.length > 0) throw new Unavailable(`no kubelet can be run here: ${why.join('; ')}`)
  const say = (text: string) => console.log(text)
  const clock = new Clock(say)
  const { kubelet, runtime } = provide(clock, say)

  const world = { place: `${PLACE}/node`, cgroups, kubelet, runtime, options }
  return confined(`${import.meta.dirname}/inside.ts`, world, PLACE, cgroups)
}

main().then(
  (code) => process.exit(code),
  (error) => {
    const reason = error instanceof Error ? error.message : String(error)
    // What the machine lacks is no failure of a greater run, which counts it as skipped.
    if (error instanceof Unavailable && process.env[TALLY_FILE]) {
      console.log(`\nskipped 1: pods of a real kubelet (skipped: ${reason})`)
      closeWith({ passed: 0, failed: 0, skipped: 1 })
      process.exit(0)
    }
    console.error(`test:kubelet: ${reason}`)
    process.exit(2)
  },
)
