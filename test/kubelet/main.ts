import * as fs from 'node:fs'
import { basename } from 'node:path'
import { Unavailable } from '../../scripts/fetch/unavailable.ts'
import { runConfined } from '../helpers/own-namespaces.ts'
import { closeWith, TALLY_FILE } from '../helpers/tally.ts'
import { obstacles } from './confine/able.ts'
import { careFor } from './confine/caretaker.ts'
import { hierarchies, makeGroups } from './confine/cgroups.ts'
import { readOptions, USAGE } from './options.ts'
import { provide } from './provide.ts'
import { Clock } from './report/clock.ts'

// In the groups of the run first, then in namespaces of which they are the root, then in leaves: see cgroups.ts.
const ENTER = `
enter() { while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; }
enter "$@"
while [ "$1" != -- ]; do shift; done; shift
exec unshare --cgroup "$0" -c "$LATER" "$0" "$@"`
const LATER = `
while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift
exec unshare --pid --fork --kill-child --mount --propagation private --net --ipc "$0" -c '"$@"; exit $?' "$0" "$@"`

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

  const clean = await careFor({ name: basename(PLACE), cgroups, directory: PLACE })
  fs.mkdirSync(PLACE)
  const { groups, leaves } = makeGroups(cgroups)
  const world = JSON.stringify({ place: `${PLACE}/node`, cgroups, kubelet, runtime, options })
  const inside = [process.execPath, `${import.meta.dirname}/inside.ts`, world]
  try {
    return await runConfined(['sh', '-c', ENTER, 'sh', ...groups, '--', ...leaves, '--', ...inside], {
      ...process.env,
      LATER,
    })
  } finally {
    await clean()
  }
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
