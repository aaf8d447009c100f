import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { prepareMeasuring } from './command.ts'
import { repeatedCsiCalls } from './csi.ts'
import { csiPublications } from './csi-publish.ts'
import { firstMounts } from './first-mount/main.ts'
import { kernelCalls } from './kernel-calls.ts'
import { describeMachine } from './machine.ts'
import { measureCalls, measureWalks } from './measure.ts'
import { memory } from './memory.ts'
import { modules } from './modules.ts'
import { measureNodes } from './node/index.ts'
import { containers } from './nri.ts'
import { readOptions } from './options.ts'
import { findPeers, IN_MEMORY } from './peers/index.ts'
import type { Walker } from './peers/peer.ts'
import { drawOwnership } from './plot/ownership.ts'
import type { Results } from './results.ts'
import { smallVolumes } from './small.ts'
import { report } from './table.ts'
import { TARGET_PEERS } from './targets.ts'
import { makeTree } from './tree.ts'
import { MILLION, nameOf, type Tree, treesFor, type Use } from './trees.ts'
import { mountVolume, unmountVolume } from './volume.ts'

// Started by main.ts in a mount and a process namespace of its own, with a directory that main.ts removes.
const [workDirectory = '', ...args] = process.argv.slice(2)
const options = readOptions(args)
const { parts, files, full } = options
const volumes = `${workDirectory}/volumes`
const RESULTS = resolve(import.meta.dirname, 'results')
const REPORTED_ROUNDS = 2
const say = (text: string) => process.stderr.write(`${text}\n`)

try {
  fs.mkdirSync(volumes)
  prepareMeasuring()
  if (options.modules) process.stdout.write(await modules(workDirectory, volumes))
  else if (options.kernelCalls) process.stdout.write(kernelCalls(volumes))
  else if (options.csi) process.stdout.write(`${await repeatedCsiCalls()}\n${await csiPublications(say)}`)
  else if (options.small) process.stdout.write(await smallVolumes(workDirectory, volumes, say))
  else if (options.firstMount) process.stdout.write(await firstMounts(workDirectory, volumes, say))
  else if (options.nri) process.stdout.write(await containers(options.files))
  else if (options.memory) process.stdout.write(await memory())
  else await bench()
} catch (error) {
  say(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

async function bench(): Promise<void> {
  const machine = describeMachine(workDirectory)
  const results: Results = {
    machine,
    files,
    most: full ? MILLION : files,
    trees: [],
    measurements: [],
    absent: [],
    node: [],
  }
  if (parts.includes('walks') || parts.includes('calls')) measureTrees(results)
  if (parts.includes('system-calls') || parts.includes('mounts')) {
    await measureNodes(workDirectory, results, options, say)
  }
  write(results)
  process.stdout.write(report(results, false))
  say('Written: bench/results/latest.md, latest.json, and ownership.svg where walks were measured')
}

function measureTrees(results: Results): void {
  const peers = findPeers(workDirectory, volumes, say)
  results.absent.push(...peers.absent)
  for (const { what, reason } of peers.absent) say(`absent: ${what}: ${reason}`)
  for (const [use, tree] of treesFor(options)) {
    const at = `${volumes}/${results.trees.length}`
    const calls = use === 'targets' && tree.files === files && parts.includes('calls')
    if (!calls && !parts.includes('walks')) continue
    try {
      // A tree of small directories has an inode more for every five files.
      mountVolume(tree.fileSystem, at, Math.ceil(tree.files * 1.3) + 1000)
    } catch (error) {
      results.absent.push({ what: nameOf(tree), reason: error instanceof Error ? error.message : String(error) })
      continue
    }
    say(nameOf(tree))
    results.trees.push(tree)
    const subject = { tree, at: `${at}/tree`, into: results.measurements }
    makeTree(subject.at, tree.files, tree.shape)
    if (parts.includes('walks')) {
      const walkers = peers.walkers.filter((walker) => isWanted(walker, use, tree))
      for (let round = 0; round < roundsOf(use); round++) {
        say(`  round ${round + 1} of ${roundsOf(use)}`)
        measureWalks(subject, walkers, round)
      }
    }
    if (calls) measureCalls(subject, peers.callers, options.rounds)
    unmountVolume(at)
    write(results)
  }
}

function isWanted({ name }: Walker, use: Use, tree: Tree): boolean {
  if (options.headline) return TARGET_PEERS.includes(name)
  if (use === 'modekeep') return name === 'modekeep keep'
  return name !== IN_MEMORY || (use === 'targets' && tree.files === files)
}

function roundsOf(use: Use): number {
  if (use === 'targets') return options.rounds
  return use === 'report' ? Math.min(options.rounds, REPORTED_ROUNDS) : 1
}

/** Written after each tree: who ends the run early keeps what was measured. */
function write(results: Results): void {
  fs.writeFileSync(`${RESULTS}/latest.json`, `${JSON.stringify(results, null, 2)}\n`)
  fs.writeFileSync(`${RESULTS}/latest.md`, report(results, true))
  const drawn = drawOwnership(results)
  if (drawn) fs.writeFileSync(`${RESULTS}/ownership.svg`, drawn)
}
