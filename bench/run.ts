import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describeMachine } from './machine.ts'
import { measureRepeatedMounts, measureWalks } from './measure.ts'
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
const say = (text: string) => process.stderr.write(`${text}\n`)

fs.mkdirSync(volumes)
if (options.profile) process.stdout.write(profile(workDirectory, volumes, options.full ? 1_000_000 : 100_000))
else publish(bench(options))

function bench({ fileSystems, sizes, rounds }: Options): Results {
  const peers = findPeers(workDirectory, volumes, say)
  const results: Results = { machine: describeMachine(workDirectory), rounds, measurements: [], absent: peers.absent }
  for (const { what, reason } of peers.absent) say(`absent: ${what}: ${reason}`)
  for (const fileSystem of fileSystems) {
    const volume = `${volumes}/${fileSystem}`
    try {
      mountVolume(fileSystem, volume, 100_000 + sizes.reduce((sum, files) => sum + files, 0))
    } catch (error) {
      results.absent.push({ what: fileSystem, reason: error instanceof Error ? error.message : String(error) })
      continue
    }
    for (const files of sizes) measure(results, peers, fileSystem, files, `${volume}/${files}`)
    unmountVolume(volume)
  }
  return results
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

function publish(results: Results): void {
  const directory = resolve(import.meta.dirname, 'results')
  fs.mkdirSync(directory, { recursive: true })
  const json = `${JSON.stringify(results, null, 2)}\n`
  fs.writeFileSync(`${directory}/latest.json`, json)
  fs.writeFileSync(`${directory}/latest.md`, report(results, true))
  fs.writeFileSync(`${directory}/ownership.svg`, drawOwnership(results))
  process.stdout.write(options.json ? json : report(results, false))
  say('Written: bench/results/latest.json, latest.md, ownership.svg')
}
