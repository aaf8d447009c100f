import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KILL } from '../faults/fault.ts'
import { cannotInject, injectAt, modekeepOn, traceProgram } from '../helpers/inject.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { endsOfWrites, isPassing, isPersistent, listKillPoints, type TracedCall } from '../helpers/strace-text.ts'
import { makeVolume } from './volume.ts'

const title = `an import, killed at any of its changes${cannotInject && ` (skipped: ${cannotInject})`}`

/** Volumes whose record has its name: an import fills a directory beside it and renames that. */
function listRecordsInPlace(directory: string): string[] {
  if (!fs.existsSync(directory)) return []
  const isInPlace = (name: string) => !name.endsWith('.import') && fs.existsSync(`${directory}/${name}/record.json`)
  return fs.readdirSync(directory).filter(isInPlace)
}

describe.skipIf(cannotInject !== '')(title, () => {
  const run = (node: BinaryNode, ...args: string[]) => {
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` }
    return JSON.parse(execFileSync(BINARY, [...args, '--json'], { env, encoding: 'utf8' }))
  }

  it(
    'an import killed at any change leaves all of the journal or nothing in the volume, and the next import succeeds',
    async () => {
      const [here, there] = [new BinaryNode(), new BinaryNode()]
      const source = `${here.volumes}/data`
      const file = `${here.top}/data.journal`
      const inodes = Object.keys(makeVolume(source)).length
      run(here, 'apply', source, '--fsgroup', '2000')
      run(here, 'journal', 'export', source, '--output', file)
      const wouldRestore = run(here, 'restore', source, '--dry-run').report.changed
      expect(wouldRestore).toBeGreaterThan(inodes / 2)
      const program = modekeepOn(there, ['journal', 'import', file])
      const { calls } = await traceProgram(program)
      const ends = endsOfWrites(calls)
      const chosen = (call: TracedCall) => (isPersistent(call, there.top) && ends(call)) || isPassing(call)
      // The runtime opens more or fewer files in each run.
      const all = listKillPoints(calls, chosen, there.top, /^openat$/)
      const points = all.filter((_, index) => index % sized(5, 2, 1) === 0)
      const seen: boolean[] = []
      const missed: string[] = []
      for (const point of points) {
        for (const made of [there.state, dirname(there.log)]) fs.rmSync(made, { recursive: true, force: true })
        if (!(await injectAt(program, point, KILL)).reached) missed.push(point.text)
        const isInPlace = listRecordsInPlace(`${there.state}/ownership`).length > 0
        seen.push(isInPlace)
        const { outcome, report } = run(there, 'restore', source, '--dry-run')
        expect(outcome === 'would restore').toBe(isInPlace)
        if (outcome === 'would restore') expect(report.changed).toBe(wouldRestore)
        else expect(outcome).toBe('nothing recorded')
        const again = run(there, 'journal', 'import', file)
        expect(again.outcome).toBe(outcome === 'would restore' ? 'already here' : 'imported')
        expect(fs.readdirSync(`${there.state}/ownership`)).toEqual([again.volume])
        expect(run(there, 'restore', source, '--dry-run').report.changed).toBe(wouldRestore)
      }
      console.log(`import: ${points.length} of ${all.length} points tried, ${points.length - missed.length} deaths`)
      expect(missed).toEqual([])
      expect(all.length).toBeGreaterThan(20)
      expect(new Set(seen)).toEqual(new Set([false, true]))
    },
    PATIENCE,
  )
})
