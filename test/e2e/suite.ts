import { execFile, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { type Spec, specsIn } from './report.ts'
import type { World } from './world.ts'

// A spec waits for a node more than it works.
const PROCESSES = 4
const OURS = 'External.Storage'

/** The names of the suite's specs for the driver that the file describes. */
export async function listSpecs({ suite, place }: World, driver: string): Promise<string[]> {
  const directory = `${place}/listed`
  fs.mkdirSync(directory)
  const flags = [`-storage.testdriver=${driver}`, `-ginkgo.focus=${OURS}`, '-ginkgo.dryRun', `-report-dir=${directory}`]
  await promisify(execFile)(suite['e2e.test'], flags, { maxBuffer: 64 << 20 })
  return specsIn(directory)
    .filter(({ verdict }) => verdict !== 'skipped')
    .map(({ name }) => name)
}

/** Runs these specs, some at a time, and prints each process's summary. Returns what became of each. */
export async function runSpecs(world: World, driver: string, names: readonly string[], logs: string): Promise<Spec[]> {
  const shares = Array.from({ length: Math.min(PROCESSES, names.length) }, (_, share) =>
    names.filter((_, index) => index % PROCESSES === share),
  )
  const all = await Promise.all(shares.map((share, index) => runShare(world, driver, share, `${logs}/suite.${index}`)))
  return all.flat()
}

async function runShare(world: World, driver: string, names: readonly string[], logs: string): Promise<Spec[]> {
  const { suite, place, programs } = world
  const { 'e2e.test': program } = suite
  fs.mkdirSync(logs)
  const flags = [
    `-storage.testdriver=${driver}`,
    `-kubeconfig=${place}/pki/admin.kubeconfig`,
    `-kubectl-path=${programs.kubernetes.kubectl}`,
    '-provider=skeleton',
    '-num-nodes=1',
    `-report-dir=${logs}`,
    '-ginkgo.noColor',
    `-ginkgo.focus=(^| )(${names.map(literal).join('|')})$`,
  ]
  const out = fs.openSync(`${logs}/output`, 'w')
  const child = spawn(program, flags, { stdio: ['ignore', out, out] })
  fs.closeSync(out)
  await new Promise((done, failed) => child.once('error', failed).once('exit', done))
  const output = fs.readFileSync(`${logs}/output`, 'utf8')
  const summary = output.split('\n').filter((line) => /^(Ran \d+ of|(SUCCESS|FAIL)!)/.test(line))
  console.log(summary.length > 0 ? summary.join('  ') : output.split('\n').slice(-30).join('\n'))
  const found = fs.readdirSync(logs).some((name) => name.endsWith('.xml')) ? specsIn(logs) : []
  return names.map((name) => {
    const seen = found.find((spec) => spec.name === name)
    return seen ?? { name, verdict: 'failed', seconds: 0, failure: 'the suite says nothing of it' }
  })
}

const literal = (name: string) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
