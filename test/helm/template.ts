import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { writeChart } from '../../scripts/chart/files.ts'
import { provideClients } from '../../scripts/fetch/clients.ts'
import type { Resource } from '../kubernetes/render.ts'

const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-chart-'))
process.once('exit', () => fs.rmSync(place, { recursive: true, force: true }))

let created = 0

/** Writes a complete chart of its own. */
export function createChart(): string {
  const directory = join(place, String(++created), 'modekeep')
  writeChart(directory)
  return directory
}

/** Runs helm with directories of its own. */
export function runHelm(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { PATH: process.env.PATH, HOME: place }
  return spawnSync(provideClients().helm, args, { encoding: 'utf8', env, maxBuffer: 64 << 20 })
}

/** Returns what `helm template` prints for values. */
export function runTemplate(chart: string, values: object, ...args: string[]) {
  const file = join(place, `values-${++created}.json`)
  fs.writeFileSync(file, JSON.stringify(values))
  return runHelm('template', 'modekeep', chart, '--namespace', 'kube-system', '--values', file, ...args)
}

/** Returns the objects of the chart. @throws {Error} with the message of helm */
export function renderChart(chart: string, values: object, ...args: string[]): Resource[] {
  const { status, stdout, stderr } = runTemplate(chart, values, ...args)
  if (status !== 0) throw new Error(stderr)
  return parseAllDocuments(stdout).map((document) => document.toJS())
}
