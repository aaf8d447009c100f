import type * as fs from 'node:fs'

export const GENERATIONS = ['log', 'log.1', 'log.2', 'log.3']

/** Of the log in a directory and its rotated files, the youngest file first. */
export function logLines(over: typeof fs, directory: string): string[] {
  return GENERATIONS.filter((name) => over.existsSync(`${directory}/${name}`)).flatMap((name) =>
    over.readFileSync(`${directory}/${name}`, 'utf8').split('\n').slice(0, -1),
  )
}
