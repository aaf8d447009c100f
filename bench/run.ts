import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describeMachine } from './machine.ts'
import { measureRepeatedMounts, measureWalks } from './measure.ts'
import { measureNodes } from './node/index.ts'
import { type FileSystem, type Options, readOptions } from './options.ts'
import { findPeers, type Peers } from './peers/index.ts'
import { drawOwnership } from './plot/ownership.ts'
import { profile } from './profile.ts'
import type { Results } from './results.ts'
import { report } from './table.ts'
import { makeTree } from './tree.ts'
import { mountVolume, unmountVolume } from './volume.ts'

// Started by main.ts in a mount and a process namespace of its own, with a directory that main.ts removes.
const [workDirectory = '', ...args] = process.argv.slice(2)
const options = readOptions(args)
const volumes = `${workDirectory}/volumes`
const RESULTS = resolve(import.meta.dirname, 'results')
const say = (text: string) => process.stderr.write(`${text}\n`)

try {
  fs.mkdirSync(volumes)
  if (options.profile) process.stdout.write(profile(workDirectory, volumes, options.full ? 1_000_000 : 100_000))
  else show(await bench(options))
} catch (error) {
  say(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

async function bench(options: Options): Promise<Results> {
  const machine = describeMachine(workDirectory)
  const results: Results = { machine, rounds: options.rounds, measurements: [], absent: [], node: [] }
  if (!options.node) benchTrees(results, options)
  results.node = await measureNodes(workDirectory, options.rounds, say)
  write(results)
  return results
}

function benchTrees(results: Results, { fileSystems, sizes: sizesOn }: Options): void {
  const peers = findPeers(workDirectory, volumes, say)
  results.absent.push(...peers.absent)
  for (const { what, reason } of peers.absent) say(`absent: ${what}: ${reason}`)
  for (const fileSystem of fileSystems) {
    const volume = `${volumes}/${fileSystem}`
    const sizes = sizesOn(fileSystem)
    try {
      mountVolume(fileSystem, volume, 100_000 + sizes.reduce((sum, files) => sum + files, 0))
    } catch (error) {
      results.absent.push({ what: fileSystem, reason: error instanceof Error ? error.message : String(error) })
      continue
    }
    for (const files of sizes) measure(results, peers, fileSystem, files, `${volume}/${files}`)
    unmountVolume(volume)
    write(results)
  }
  if (results.measurements.length === 0) throw new Error(`nothing was measured: ${JSON.stringify(results.absent)}`)
}

function measure(results: Results, peers: Peers, fileSystem: FileSystem, files: number, tree: string): void {
  const subject = { fileSystem, files, tree, into: results.measurements }
  makeTree(tree, files)
  for (let round = 0; round < results.rounds; round++) {
    say(`${fileSystem}, ${files.toLocaleString('en')} files, round ${round + 1} of ${results.rounds}`)
    measureWalks(subject, peers.walkers, round)
  }
  measureRepeatedMounts(subject, peers.drivers, results.rounds)
}

/** Written after each file system: who ends the run early keeps what was measured. */
function write(results: Results): void {
  fs.mkdirSync(RESULTS, { recursive: true })
  fs.writeFileSync(`${RESULTS}/latest.json`, toJson(results))
  fs.writeFileSync(`${RESULTS}/latest.md`, report(results, true))
  if (results.measurements.length > 0) fs.writeFileSync(`${RESULTS}/ownership.svg`, drawOwnership(results))
}

function show(results: Results): void {
  process.stdout.write(options.json ? toJson(results) : report(results, false))
  say(`Written: bench/results/latest.json, latest.md${results.measurements.length > 0 ? ', ownership.svg' : ''}`)
}

function toJson(results: Results): string {
  return `${JSON.stringify(results, null, 2)}\n`
}
