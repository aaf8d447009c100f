import { fileURLToPath } from 'node:url'

/** This very program: the file at its path may be another version by now. */
export const OWN_EXECUTABLE = '/proc/self/exe'

/** The executable, which has no URL, is its own entry. */
const ENTRY = import.meta.url === '' ? [] : [fileURLToPath(new URL('../../../driver/main.ts', import.meta.url))]

/** The arguments of a process of this program that is to do what a word says. */
export function createArguments(word: string): string[] {
  return [...ENTRY, word]
}
