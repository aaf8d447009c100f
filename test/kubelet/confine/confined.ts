import * as fs from 'node:fs'
import { basename } from 'node:path'
import { runConfined } from '../../helpers/own-namespaces.ts'
import { careFor } from './caretaker.ts'
import { type Hierarchy, makeGroups } from './cgroups.ts'

// In the groups of the run first, then in namespaces of which they are the root, then in leaves: see cgroups.ts.
const ENTER = `
enter() { while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; }
enter "$@"
while [ "$1" != -- ]; do shift; done; shift
exec unshare --cgroup "$0" -c "$LATER" "$0" "$@"`
const LATER = `
while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift
exec unshare --pid --fork --kill-child --mount --propagation private --net --ipc "$0" -c '"$@"; exit $?' "$0" "$@"`

/**
 * Calls a module's `run` with this world, in control groups and namespaces of its own; nothing is left of it.
 * @param place a directory that one run at a time has
 * @returns its exit code
 */
export async function confined(
  module: string,
  world: object,
  place: string,
  cgroups: readonly Hierarchy[],
): Promise<number> {
  const clean = await careFor({ name: basename(place), cgroups, directory: place })
  fs.mkdirSync(place)
  const { groups, leaves } = makeGroups(cgroups)
  const inside = [process.execPath, `${import.meta.dirname}/inside.ts`, module, JSON.stringify(world)]
  try {
    return await runConfined(['sh', '-c', ENTER, 'sh', ...groups, '--', ...leaves, '--', ...inside], {
      ...process.env,
      LATER,
    })
  } finally {
    await clean()
  }
}
