import { Unavailable } from '../../scripts/fetch/unavailable.ts'
import { closeWith, TALLY_FILE } from '../helpers/tally.ts'
import { obstacles } from '../kubelet/confine/able.ts'
import { hierarchies } from '../kubelet/confine/cgroups.ts'
import { confined } from '../kubelet/confine/confined.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'

const NAME = 'modekeep-e2e-test'
// Whatever TMPDIR is: one run at a time has it.
const PLACE = `/tmp/${NAME}`

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  const cgroups = hierarchies(NAME)
  const why = obstacles(cgroups)
  if (why.length > 0) throw new Unavailable(`no cluster can be run here: ${why.join('; ')}`)
  const say = (text: string) => console.log(text)
  const { programs, suite } = provide(options.kubernetes, say)
  const world = { place: `${PLACE}/node`, cgroups, programs, suite, options }
  return confined(`${import.meta.dirname}/inside.ts`, world, PLACE, cgroups)
}

main().then(
  (code) => process.exit(code),
  (error) => {
    const reason = error instanceof Error ? error.message : String(error)
    // What the machine lacks is no failure of a greater run, which counts it as skipped.
    if (error instanceof Unavailable && process.env[TALLY_FILE]) {
      console.log(`\nskipped 1: Kubernetes' own storage tests (skipped: ${reason})`)
      closeWith({ passed: 0, failed: 0, skipped: 1 })
      process.exit(0)
    }
    console.error(`test:e2e: ${reason}`)
    process.exit(2)
  },
)
