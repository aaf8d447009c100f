import { parseArgs } from 'node:util'

export interface Options {
  rounds: number
  /** Of the first round; each later one has the next. */
  seed: number
  /** Rounds at one time. */
  lanes: number
  json: boolean
}

export const USAGE = `Usage: npm run test:soak -- [OPTION]...
Plays kubelet with many pods on the built driver, kills calls and daemons at random times, and looks for what is left:
mounts, processes, descriptors, loop devices, records, locks, and volumes that are not as they were. Needs root.

  --rounds N   lives of one to four pods with one volume (default: 2000)
  --seed S     of the first round, each later one has the next (default: of the time); what a round does follows from
               its seed, how its calls meet does not
  --lanes N    rounds at one time (default: 6)
  --json       one JSON document instead of the text

Example, the round of seed 4711 alone, then among its neighbours:
  npm run test:soak -- --seed 4711 --rounds 1
  npm run test:soak -- --seed 4705 --rounds 12
`

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '2000' },
      seed: { type: 'string', default: String(Date.now() % 1e6) },
      lanes: { type: 'string', default: '6' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const [rounds, seed, lanes] = [number('rounds', 1), number('seed', 0), number('lanes', 1)]
  return { rounds, seed, lanes, json: values.json }

  function number(name: 'rounds' | 'seed' | 'lanes', least: number): number {
    const value = Number(values[name])
    if (!Number.isSafeInteger(value) || value < least) {
      throw new Error(`--${name} is "${values[name]}": it wants a number from ${least} on`)
    }
    return value
  }
}
