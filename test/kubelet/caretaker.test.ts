import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers/fuse-node.ts'
import { isRoot } from '../helpers/stage.ts'
import { careFor } from './confine/caretaker.ts'
import { hierarchies, makeGroups } from './confine/cgroups.ts'

const all = isRoot ? hierarchies() : []
const cannot = all.length > 0 ? '' : 'control groups need root, and a mount below /sys/fs/cgroup; run "sudo npm test"'
const SCRIPT = resolve(import.meta.dirname, 'confine/caretaker.ts')

/** Leftovers of a run beside which a real one may be at work. */
function leftovers(name: string) {
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-cared-for-`)
  const cgroups = all.map((one) => ({ ...one, group: `${one.group}-${name}-${process.pid}` }))
  return { name: `${name}-${process.pid}`, cgroups, directory }
}

describe.skipIf(cannot !== '')(`the leftovers of a test run with a kubelet${cannot && ` (skipped: ${cannot})`}`, () => {
  it('are removed, and leftovers of an earlier run are removed first', async () => {
    const ours = leftovers('done')
    makeGroups(ours.cgroups)
    const clean = await careFor(ours)
    expect([...ours.cgroups.map(({ group }) => group), ours.directory].filter((path) => fs.existsSync(path))).toEqual(
      [],
    )
    makeGroups(ours.cgroups)
    fs.mkdirSync(ours.directory)
    await clean()
    expect([...ours.cgroups.map(({ group }) => group), ours.directory].filter((path) => fs.existsSync(path))).toEqual(
      [],
    )
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)('are removed after %s', async (signal) => {
    const ours = leftovers(signal)
    const parent = `
      const { careFor } = await import(${JSON.stringify(SCRIPT)})
      await careFor(${JSON.stringify(ours)})
      console.log('cared for')
      setInterval(() => {}, 1000)`
    const args = ['--input-type=module', '--eval', parent]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    makeGroups(ours.cgroups)
    fs.mkdirSync(ours.directory)
    child.kill(signal)
    await until(() => [...ours.cgroups.map(({ group }) => group), ours.directory].every((path) => !fs.existsSync(path)))
  })
})
