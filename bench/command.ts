import type { SpawnSyncOptions } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname, resolve } from 'node:path'
import { runCommand } from '../scripts/fetch/command.ts'

/** What one run of a command took. Times are in milliseconds; of the processor's, with all threads and children. */
export interface Cost {
  wall: number
  user: number
  system: number
  /** Peak of resident memory, in KiB. */
  memory: number
}

const SOURCE = resolve(import.meta.dirname, 'measured.c')
const MEASURED = resolve(import.meta.dirname, 'results/measured')

/** Compiles what `measured` runs commands with. */
export function prepareMeasuring(): void {
  fs.mkdirSync(dirname(MEASURED), { recursive: true })
  compile(SOURCE, MEASURED)
}

export function compile(source: string, binary: string): void {
  runCommand('cc', ['-O2', '-Wall', '-o', binary, source])
}

/**
 * Runs a command to its end.
 * @throws {Error} with its last words, if it is missing or fails
 */
export function measured(
  command: string,
  args: readonly string[],
  options: SpawnSyncOptions = {},
): { cost: Cost; stdout: string } {
  return readMeasured(runCommand(MEASURED, [command, ...args], options))
}

/** Takes the last line, the cost, off the output. */
export function readMeasured(output: string): { cost: Cost; stdout: string } {
  const end = output.trimEnd().lastIndexOf('\n')
  const [wall = 0, user = 0, system = 0, memory = 0] = output
    .slice(end + 1)
    .trim()
    .split(' ')
    .map(Number)
  return { cost: { wall: wall / 1e6, user: user / 1e6, system: system / 1e6, memory }, stdout: output.slice(0, end) }
}

export function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}
