import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { DriverName } from '../node/manifest.ts'
import { until } from '../node/until.ts'
import type { Case, Scene } from './case.ts'
import { control, FSGROUP } from './tree.ts'

const PER_DIRECTORY = 1000
const PART = 0.2
const FOREIGN = `find /data ! -group ${FSGROUP} | wc -l >/foreign`

interface Outcome {
  /** Of a hundred, what had the group when it was killed. */
  done: number
  foreign: number
  widened: number
}

/** Kubelet's walk has been known to be cut off by its death, and not to be repeated (kubernetes#89776). */
const killed: Case = {
  name: "kubelet and driver are killed during a walk: all files have one group before the container's first command",
  when: 'alone',
  async run(scene) {
    const ours = await killedIn(scene, 'modekeep', true)
    const theirs = await killedIn(scene, 'naive', true)
    assert.equal(ours.foreign, 0)
    assert.equal(ours.widened, 0)
    // Without a second call the naive walk stays where the SIGKILL cut it off.
    if (scene.node.repeatsMounts) control('widened', theirs.widened, scene.files)
    else control('some were widened', theirs.widened > 0, true)
    return { modekeep: words(scene, ours), naive: words(scene, theirs) }
  },
}

const orphaned: Case = {
  name: "kubelet alone is killed during a walk: the walk continues, and kubelet's next call finds one group on all files",
  when: 'alone',
  async run(scene) {
    const ours = await killedIn(scene, 'modekeep', false)
    assert.equal(ours.foreign, 0)
    assert.equal(ours.widened, 0)
    return { modekeep: words(scene, ours) }
  },
}

const words = ({ files }: Scene, { done, foreign, widened }: Outcome) =>
  `killed at ${done} % of ${files} files; then ${foreign} without the group, ${widened} widened`

async function killedIn({ node, files }: Scene, driver: DriverName, drivers: boolean): Promise<Outcome> {
  const name = `${drivers ? 'killed' : 'orphaned'}-${driver}`
  const source = `${node.volumes}/${name}`
  const sample = makeMany(source, files)
  const owned = () => sample.filter((path) => fs.statSync(path).gid === FSGROUP).length
  const more = driver === 'modekeep' ? { ownership: 'walk' } : {}
  const pod = await node.give({ name, driver, options: { source, ...more }, fsGroup: FSGROUP, first: FOREIGN })
  await until('a part of the walk is done', () => owned() >= sample.length * PART)
  await node.kubelet.stop('SIGKILL')
  // As an init system does that ends a service: all of its processes.
  if (drivers) for (const pid of driversOf(pod.uid)) process.kill(pid, 'SIGKILL')
  const done = owned()
  assert(done < sample.length, `the walk of ${driver} was over: use more --files`)
  await node.restartKubelet('SIGKILL', [])
  await pod.running()
  await until('the container has counted', async () => (await pod.read('/foreign')) !== '')
  const foreign = Number(await pod.read('/foreign'))
  const widened = find(source, '-type', 'f', '-perm', '-0060')
  await node.remove(pod)
  execFileSync('rm', ['-rf', source])
  return { done: Math.round((100 * done) / sample.length), foreign, widened }
}

/** Makes so many files. Returns one path of each directory. */
function makeMany(source: string, files: number): string[] {
  const sample: string[] = []
  for (let n = 0; n < files; n++) {
    const directory = `${source}/d${Math.floor(n / PER_DIRECTORY)}`
    if (n % PER_DIRECTORY === 0) {
      fs.mkdirSync(directory, { recursive: true })
      sample.push(`${directory}/f${n}`)
    }
    fs.closeSync(fs.openSync(`${directory}/f${n}`, 'wx', 0o600))
  }
  return sample
}

/** Processes of a driver at work for the pod. */
function driversOf(uid: string): number[] {
  return fs
    .readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!pid || pid === process.pid) return false
      try {
        return fs
          .readFileSync(`/proc/${pid}/cmdline`, 'utf8')
          .split('\0')
          .some((word) => word.includes(`/pods/${uid}/volumes/`))
      } catch {
        return false
      }
    })
}

function find(directory: string, ...tests: string[]): number {
  return execFileSync('find', [directory, ...tests, '-printf', '.'], { maxBuffer: 1 << 24 }).length
}

export const KILLED_WALK = [killed, orphaned]
