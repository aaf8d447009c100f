import { closeSync, existsSync } from 'node:fs'
import { execa } from 'execa'
import { scopedCommand } from '../daemon-command.ts'
import { HelperError, type HelperOrder, type Helpers, MARK } from '../helpers.ts'
import { CHILD_OPTIONS, type Ending, endingOf, within } from './child.ts'
import { HelperOutput } from './helper-output.ts'
import { endAll, signalGroup } from './helper-processes.ts'
import { findProgram, SYSTEM_PATH } from './helper-program.ts'
import { openMemoryFile } from './memory-file.ts'

const UNTIL_KILLED_MS = 2000

let started = 0

/** sd_booted(3) */
const hasSystemdBooted = () => existsSync('/run/systemd/system')

/**
 * @param path the directories in which programs are looked up, and what they get as PATH
 * @param hasSystemd whether systemd runs here
 */
export function linuxHelpers(path: readonly string[] = SYSTEM_PATH, hasSystemd = hasSystemdBooted): Helpers {
  return {
    async run(order) {
      const command = await commandOf(order, path, hasSystemd)
      const secretFile = order.secretFile && openMemoryFile(order.secretFile)
      try {
        await runProgram(command, order, path, secretFile)
      } finally {
        if (secretFile !== undefined) closeSync(secretFile)
      }
    },
  }
}

/** A daemon of a helper's must outlive the service that kubelet is. */
async function commandOf(order: HelperOrder, path: readonly string[], hasSystemd: () => boolean): Promise<Command> {
  const plain = { program: findProgram(order.program, path), args: order.args }
  if (!order.leavesDaemon || !hasSystemd()) return plain
  try {
    await tryScope(path)
    return scoped(plain, path)
  } catch (error) {
    const why = (error as Error).message
    order.warn?.(`${order.program} gets no scope of systemd's, so that a restart of kubelet may end it (${why})`)
    return plain
  }
}

// It only asks systemd, which answers at once.
const SCOPE_SECONDS = 5

/** Tries it with a program that does nothing: after a failure with the helper nobody could say whether that has run. */
async function tryScope(path: readonly string[]): Promise<void> {
  const command = scoped({ program: findProgram('true', path), args: [] }, path)
  const order = { program: 'systemd-run', args: command.args, timeoutSeconds: SCOPE_SECONDS, secrets: [] }
  await runProgram(command, order, path, undefined)
}

function scoped(plain: Command, path: readonly string[]): Command {
  const { program, args } = scopedCommand(plain, randomName())
  return { program: findProgram(program, path), args }
}

interface Command {
  program: string
  args: readonly string[]
}

function randomName(): string {
  return `${process.pid}-${process.hrtime.bigint()}`
}

async function runProgram(
  command: Command,
  order: HelperOrder,
  path: readonly string[],
  secretFile: number | undefined,
): Promise<void> {
  const mark = `${process.pid}-${performance.timeOrigin}-${++started}`
  const { pid, exited, output } = await start(command, order, secretFile, {
    ...order.environment,
    PATH: path.join(':'),
    LC_ALL: 'C',
    [MARK]: mark,
  })
  const ending = await within(order.timeoutSeconds * 1000, exited)
  if (ending?.code === 0) {
    if (!order.leavesDaemon) await endAll(pid, mark)
    return output.finish()
  }
  if (ending === undefined) {
    signalGroup(pid, 'SIGTERM')
    await within(UNTIL_KILLED_MS, exited)
  }
  const isEnded = await endAll(pid, mark)
  await output.finish()
  throw new HelperError(`${order.program} ${told(order, ending, isEnded)}: ${output.text || 'it said nothing'}`)
}

function told({ timeoutSeconds }: HelperOrder, ending: Ending | undefined, isEnded: boolean): string {
  const left = isEnded ? '' : ', and the kernel does not let it end'
  if (ending === undefined) {
    return `did not end within ${timeoutSeconds} s (helperTimeoutSeconds in the node's modekeep configuration) and was ended${left}`
  }
  return ending.signal === null
    ? `failed with exit status ${ending.code}${left}`
    : `was ended by ${ending.signal}${left}`
}

async function start(
  { program: file, args }: Command,
  { program, input, secrets }: HelperOrder,
  secretFile: number | undefined,
  env: Record<string, string>,
) {
  const child = execa(file, [...args], {
    ...CHILD_OPTIONS,
    env,
    ...(input === undefined ? {} : { input }),
    // Its types know descriptors up to 9 only.
    stdio: [
      input === undefined ? 'ignore' : 'pipe',
      'pipe',
      'pipe',
      ...(secretFile === undefined ? [] : [secretFile as 3]),
    ],
  } as const)
  const exited = endingOf(child.nodeChildProcess)
  if (child.pid === undefined) {
    const { code } = await child
    throw new HelperError(
      `${program} could not be started (${code ?? 'no reason is known'}): install its package again`,
    )
  }
  return { pid: child.pid, exited, output: new HelperOutput([child.stdout, child.stderr], secrets) }
}
