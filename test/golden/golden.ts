import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

/** The command that writes the files anew. Read their diff: a user reads every changed word. */
const WRITE = 'MODEKEEP_TEST_GOLDEN=write node_modules/.bin/node scripts/test.ts test/golden'

/**
 * Compares a text with a file of this directory, which records what users read.
 * @param name of the file
 */
export function expectGolden(name: string, text: string): void {
  const file = join(import.meta.dirname, name)
  if (process.env.MODEKEEP_TEST_GOLDEN === 'write') fs.writeFileSync(file, text)
  expect(text, `test/golden/${name} has another text; if the new one is right: ${WRITE}`).toBe(
    fs.readFileSync(file, 'utf8'),
  )
}

/** Words that differ between two runs, and what stands for them in a golden file. The first that matches is taken. */
const VARYING: readonly [RegExp, string][] = [
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?/g, '<date>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>'],
  [/\b(text-)?[0-9a-f]{8,32}(\.[0-9a-f]+)*-[0-9a-f]+-[0-9a-f]+\b/g, '<volume>'],
  [/("(?:pid|ms|durationMs|device|inode|mountId|uptime|seconds|startedAt|[a-z]*Ms)": ?)[\d.]+/gi, '$1<number>'],
  [/("(?:available|total|used)": ?)"\d+"/g, '$1<number>'],
  [/"stack":"(?:[^"\\]|\\.)*"/g, '"stack":"<stack>"'],
  [/\b\d+(\.\d+)? ?(ms|s)\b/g, '<duration>'],
  [/^(modekeep_\S*(?:seconds|bytes)\S*) .*/gm, '$1 <value>'],
  // Columns are as wide as the paths of the run.
  [/ {3,}/g, '  '],
]

/** Replaces what differs between two runs. @param places directories of the run, by the name that stands for them */
export function normalize(text: string, places: Readonly<Record<string, string>>): string {
  let normal = text
  for (const [name, place] of Object.entries(places)) normal = normal.replaceAll(place, `<${name}>`)
  for (const [pattern, name] of VARYING) normal = normal.replace(pattern, name)
  return normal
}
