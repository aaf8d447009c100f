import * as fs from 'node:fs'
import { ATTACKS_WITHOUT_DOOR } from '../../test/attacks/without-door.ts'
import { DOOR_VARIABLE, type DoorRun } from '../../test/helpers/door-run.ts'
import { readSeed, SEED_VARIABLE } from '../../test/helpers/door-seed.ts'

/** Removes an option's value from the arguments. @returns undefined without the option */
export function takeSeed(args: string[]): string | undefined {
  const at = args.indexOf('--seed')
  return at < 0 ? undefined : (args.splice(at, 2)[1] ?? '')
}

/** Arguments for vitest, and variables: a resident worker makes the FlexVolume calls of the selected tests. */
export function selectDoorTests(args: readonly string[]): { args: string[]; env: NodeJS.ProcessEnv } {
  const isNamed = args.some((argument) => /^(-t|--testNamePattern)/.test(argument))
  for (const [name, reason] of ATTACKS_WITHOUT_DOOR)
    console.log(`left out: ${requireAttackFile(name)}, because ${reason}`)
  const excluded = [...ATTACKS_WITHOUT_DOOR.keys()].flatMap((name) => ['--exclude', requireAttackFile(name)])
  return { args: [...args, ...excluded], env: createDoorVariables(isNamed ? 'named' : 'all') }
}

/** The faults' tenth takes the CPUs while the attacks' waits for deadlines. */
const FAULTS_FILE = 'test/faults/door.test.ts'

export const isDoorTest = (file: string) => file === FAULTS_FILE

/** Arguments and variables for a tenth of the attacks, and of the faults in a resident worker. */
export function drawDoorTests(): { args: string[]; env: NodeJS.ProcessEnv } {
  console.log(`\nattacks and faults in a resident worker: ${SEED_VARIABLE}=${readSeed()} draws a tenth`)
  const isLeftOut = (file: string) => [...ATTACKS_WITHOUT_DOOR.keys()].some((name) => file === requireAttackFile(name))
  const files = fs.globSync('test/attacks/*.test.ts').filter((file) => !isLeftOut(file))
  return { args: [FAULTS_FILE, ...files], env: createDoorVariables('tenth') }
}

function createDoorVariables(run: DoorRun): NodeJS.ProcessEnv {
  return { ...process.env, [DOOR_VARIABLE]: run }
}

/** @throws {Error} if the list of exceptions is stale */
function requireAttackFile(name: string): string {
  const file = `test/attacks/${name}.test.ts`
  if (!fs.existsSync(file)) throw new Error(`test/attacks/without-door.ts names ${file}, which does not exist`)
  return file
}
