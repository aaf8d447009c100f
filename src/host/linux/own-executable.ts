import { fileURLToPath } from 'node:url'

/** The running executable. The file at its path may already be another version. */
export const OWN_EXECUTABLE = '/proc/self/exe'

/** The built executable has no URL and needs no entry script. */
const ENTRY = import.meta.url === '' ? [] : [fileURLToPath(new URL('../../../driver/main.ts', import.meta.url))]

/** Returns the arguments that start this program for the work that a word names. */
export function createArguments(verb: string): string[] {
  return [...ENTRY, verb]
}
