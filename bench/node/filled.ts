import * as fs from 'node:fs'
import { createInterface } from 'node:readline'
import { linuxHost } from '../../src/host/linux/index.ts'
import { mount } from '../../src/mount/mount.ts'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import { readRequest } from '../../src/request/request.ts'
import { kinds } from '../../src/volume/index.ts'
import { Node } from '../peers/modekeep.ts'
import { mountOptions } from '../peers/peer.ts'
import { makeTree } from '../tree.ts'
import type { NodeCall } from './calls.ts'

// Started by index.ts in a mount namespace of its own. Fills it, says "ready", then times the calls that stdin names.
const [top = '', volumes = '', mounts = '0'] = process.argv.slice(2)
const node = new Node(top, volumes)
const config = { ...DEFAULT_CONFIG, stateDir: `${top}/state`, allowedSources: [volumes] }

/** As that many calls would have left it: a source, a mount and a record each. */
async function fill(count: number): Promise<void> {
  const session = { host: linuxHost, config, note: () => {}, warn: () => {} }
  for (let pod = 0; pod < count; pod++) {
    const directory = `${top}/pods/${pod}/volumes/modekeep~fs/v`
    const source = `${volumes}/source-${pod}`
    fs.mkdirSync(directory, { recursive: true })
    fs.mkdirSync(source)
    await mount(session, readRequest(directory, mountOptions(source), config, kinds))
  }
}

const NONE = { ownership: 'none' }
const tree = `${volumes}/tree`
makeTree(tree, 10)
let walked = 0

const TIMED: Readonly<Record<NodeCall, () => number>> = {
  'repeated mount'() {
    node.mount(tree, NONE)
    const time = node.mount(tree, NONE)
    node.unmount()
    return time
  },
  unmount() {
    node.mount(tree, NONE)
    return node.unmount()
  },
  'first mount'() {
    const time = node.mount(tree, NONE)
    node.unmount()
    return time
  },
  'first mount with a walk'() {
    const fresh = `${volumes}/walked-${walked++}`
    makeTree(fresh, 10)
    const time = node.mount(fresh, {})
    node.unmount()
    return time
  },
}

await fill(Number(mounts))
console.log('ready')
for await (const call of createInterface({ input: process.stdin })) console.log(TIMED[call as NodeCall]())
