import * as fs from 'node:fs'
import { runConfined } from '../helpers/own-namespaces.ts'
import type { RuntimeWorld } from './world.ts'

// A runtime's processes and mounts go with it.
const NAMESPACES = ['--pid', '--fork', '--kill-child', '--mount-proc', '--mount', '--propagation', 'private']
const MORE = ['--net', '--ipc']
const INSIDE = `${import.meta.dirname}/../kubelet/confine/inside.ts`

/**
 * Calls a module's `run` with this world in namespaces of its own, inside of those of makeOwnPlace.
 * @returns what it has left as results
 * @throws {Error} where it has left none
 */
export async function runOnSuite<Results>(module: string, world: RuntimeWorld): Promise<Results> {
  const inside = [process.execPath, INSIDE, module, JSON.stringify(world)]
  await runConfined(['unshare', ...NAMESPACES, ...MORE, ...inside], process.env)
  if (!fs.existsSync(world.results)) throw new Error(`nothing came of containerd ${world.suite.containerd}`)
  return JSON.parse(fs.readFileSync(world.results, 'utf8'))
}
