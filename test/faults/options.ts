import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { DEFAULT_SEED } from '../helpers/door-seed.ts'
import { FAULTS, type FaultName, faultsNamed } from './fault.ts'
import type { Asked } from './matrix.ts'
import { COMMANDS, type CommandName } from './scenario.ts'

export const USAGE = `Usage: npm run test:faults -- [OPTION]...
Kills commands of the built driver, or fails a system call of theirs, at every system call in turn; after each, the same
command must end right, and nothing may be left. Needs root and strace.

  --command NAME   ${COMMANDS.join(', ')} (default: all; may be given again)
  --fault NAME     ${FAULTS.join(', ')} (default: all; may be given again)
  --every N        only each N-th of all that can befall a command (default: 1)
  --full           every one of them: the same as --every 1
  --only TEXT      only the situations with this text in their title
  --door           FlexVolume calls are handed to a resident worker, and the faults befall that worker; other commands
                   are left out
  --tenth          a tenth of the system calls, each with one of the faults, as in the gate
  --seed N         which tenth (default: ${DEFAULT_SEED})
  --workers N      as many at a time (default: one for each processor, here ${availableParallelism()})
  --json           one JSON document instead of the table
  --help           this text

Example: npm run test:faults -- --command walk --fault EIO --fault ENOSPC --every 5
Exit status: 0 all survived, 1 not all, 2 wrong usage or not possible here.
`

export interface Options {
  asked: Asked
  json: boolean
}

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      command: { type: 'string', multiple: true, default: [...COMMANDS] },
      fault: { type: 'string', multiple: true, default: [...FAULTS] },
      every: { type: 'string', default: '1' },
      full: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      workers: { type: 'string', default: String(availableParallelism()) },
      json: { type: 'boolean', default: false },
      door: { type: 'boolean', default: false },
      tenth: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(DEFAULT_SEED) },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const commands = oneOf<CommandName>('--command', values.command, COMMANDS)
  const faults = faultsNamed(oneOf<FaultName>('--fault', values.fault, FAULTS))
  const every = values.full ? 1 : natural('--every', values.every)
  const workers = natural('--workers', values.workers)
  const seed = values.tenth ? natural('--seed', values.seed) : undefined
  const asked = { commands, faults, every, only: values.only, workers, isDoor: values.door, seed }
  return { asked, json: values.json }
}

function oneOf<T extends string>(option: string, given: readonly string[], known: readonly T[]): T[] {
  return given.map((name) => {
    const found = known.find((one) => one === name)
    if (found === undefined) throw new Error(`${option} ${JSON.stringify(name)}: want one of ${known.join(', ')}`)
    return found
  })
}

function natural(option: string, text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`${option} wants a number from 1 on, got ${text}`)
  return number
}
