import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { runConfined } from '../helpers/own-namespaces.ts'
import { hierarchies, makeGroups, removeGroups } from './confine/cgroups.ts'
import { readOptions, USAGE } from './options.ts'
import { provideKubelet } from './provide/kubelet.ts'
import { provideRuntime } from './provide/packages.ts'
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

const PLACE = `${tmpdir()}/modekeep-kubelet-test`

/** One run at a time: a name that the kernel takes back with the process. False if another run has it. */
function isOnlyOne(): Promise<boolean> {
  const server = createServer().unref()
  return new Promise((done) => {
    server.once('error', () => done(false))
    server.listen('\0modekeep-kubelet-test', () => done(true))
  })
}

async function becomeOnlyOne(say: (text: string) => void): Promise<void> {
  for (let tries = 0; !(await isOnlyOne()); tries++) {
    if (tries === 0) say('waiting for another run on this machine to end …')
    await new Promise((done) => setTimeout(done, 1000))
  }
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if (process.getuid?.() !== 0) throw new Error('this needs root: run it with sudo')
  if (process.arch !== 'x64' || !fs.existsSync('/etc/debian_version'))
    throw new Error('Debian 12 on amd64 is needed: the kubelet is built for it alone')
  const say = (text: string) => console.log(text)
  const clock = new Clock(say)
  const runtime = clock.measure('containerd and runc', provideRuntime)
  const kubelet = clock.measure('kubelet', () => provideKubelet(say))

  await becomeOnlyOne(say)
  const cgroups = hierarchies()
  const clean = async () => {
    await removeGroups(cgroups)
    fs.rmSync(PLACE, { recursive: true, force: true })
  }
  // What a run that was killed has left: no processes or mounts, these went with its namespaces.
  await clean()
  fs.mkdirSync(PLACE)
  const { groups, leaves } = makeGroups(cgroups)
  const world = JSON.stringify({ place: `${PLACE}/node`, cgroups, kubelet, runtime, options })
  const inside = [process.execPath, '--disable-warning=ExperimentalWarning', `${import.meta.dirname}/inside.ts`, world]
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
    console.error(`test:kubelet: ${error instanceof Error ? error.message : error}`)
    process.exit(2)
  },
)
