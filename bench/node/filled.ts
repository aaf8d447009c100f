import * as fs from 'node:fs'
import { createInterface } from 'node:readline'
import { runCommand } from '../../scripts/fetch/command.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { BINARY, Node } from '../peers/modekeep.ts'
import { mountOptions } from '../peers/peer.ts'
import { type Counts, countCalls, total, usual } from '../syscalls.ts'
import { makeTree } from '../tree.ts'
import type { NodeCall } from './calls.ts'

// Started by index.ts in a mount namespace of its own. Fills it, says "ready", then answers each line of stdin with a line:
// a call by its milliseconds, a number of files by the system calls of a repeated mount of so many.
const [top = '', volumes = '', mounts = '0'] = process.argv.slice(2)
const node = new Node(top, volumes)
const config = { ...DEFAULT_CONFIG, stateDir: `${top}/state`, allow: [{ sources: [`${volumes}/*`] }] }

/** As that many calls would have left it: a source, a mount and a record each. */
async function fill(count: number): Promise<void> {
  const session = { host: linuxHost, config, note: () => {}, warn: () => {} }
  for (let pod = 0; pod < count; pod++) {
    const directory = `${top}/pods/${pod}/volumes/modekeep~fs/v`
    const source = `${volumes}/source-${pod}`
    fs.mkdirSync(directory, { recursive: true })
    fs.mkdirSync(source)
    await mountPodVolume(session, parseFlexVolumeRequest(directory, mountOptions(source), config, volumeKindLookup))
  }
}

const NONE = { ownership: 'none' }
const tree = `${volumes}/tree`
makeTree(tree, 10)
let walked = 0

const TIMED: Readonly<Record<NodeCall, () => number>> = {
  'repeated mount'() {
    node.mount(tree, NONE)
    const { wall } = node.mount(tree, NONE)
    node.unmount()
    return wall
  },
  unmount() {
    node.mount(tree, NONE)
    return node.unmount().wall
  },
  'first mount'() {
    const { wall } = node.mount(tree, NONE)
    node.unmount()
    return wall
  },
  'first mount with a walk'() {
    const fresh = `${volumes}/walked-${walked++}`
    makeTree(fresh, 10)
    const { wall } = node.mount(fresh, {})
    node.unmount()
    return wall
  },
}

const RUNS = 9

/**
 * Of the main thread of the loader's child, which makes the call: it makes the most. Node's other threads do what they do by
 * chance, and so does V8 with memory at random addresses.
 */
function count(files: number): Counts {
  const counted = `${volumes}/counted-${files}`
  const traces = `${top}/strace`
  makeTree(counted, files)
  node.mount(counted, {})
  const strace = ['strace', '-ff', '-y', '-o', `${traces}/of`, BINARY, ...node.mountCall(counted, {})]
  const runs = Array.from({ length: RUNS }, () => {
    fs.mkdirSync(traces)
    runCommand('setarch', ['--addr-no-randomize', ...strace], { env: { ...process.env, ...node.environment } })
    const threads = fs.readdirSync(traces).map((name) => countCalls(fs.readFileSync(`${traces}/${name}`, 'utf8')))
    fs.rmSync(traces, { recursive: true })
    return threads.reduce((most, counts) => (total(counts) > total(most) ? counts : most))
  })
  node.unmount()
  return usual(runs)
}

await fill(Number(mounts))
console.log('"ready"')
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(/^\d+$/.test(line) ? count(Number(line)) : TIMED[line as NodeCall]()))
}
