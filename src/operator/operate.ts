import type * as NodeFs from 'node:fs'
import type { Host } from '../host/host.ts'
import { CallLog } from '../log/call-log.ts'
import { appendLine } from '../log/log-file.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import type { Session } from '../store/session.ts'
import { keepHealing, type Watch } from './actions/keep-healing.ts'
import { logs } from './actions/logs.ts'
import { doctor, type Patient } from './doctor/index.ts'
import { render } from './text/line.ts'
import { logLine } from './text/log.ts'
import { jsonDocument, jsonText, printable } from './text/printable.ts'
import { ProgressLine } from './text/progress.ts'
import { aboutText, type Versions } from './usage/about.ts'
import { isChanging, parseCommand, subjectOf } from './verbs/command.ts'
import { type Command, type CommandOf, type Document, type NodeCommand, shown } from './verbs/index.ts'
import { run } from './verbs/run.ts'

export const OK = 0
export const FAILED = 1
const USAGE = 2

const STDOUT = 1
const STDERR = 2
type Stream = typeof STDOUT | typeof STDERR

/** What a command finds in the process that runs it. */
export interface World extends Omit<Patient, 'configuration'> {
  argv: readonly string[]
  env: Readonly<Record<string, string | undefined>>
  versions: Versions
  host: Host
  /** For the log. */
  fs: typeof NodeFs
  workerPool(): Session['workerPool']
  isRoot: boolean
  /** @returns false: nobody reads any more */
  write(text: string, to: Stream): boolean
  isTerminal(stream: Stream): boolean
  /** How wide the terminal of stderr is. */
  columns(): number
  workingDirectory(): string
  /** The node's configuration as it is now, and every fault in its file. */
  readConfig(): Promise<{ file: string; config: NodeConfig; faults: string[] }>
  /** Says something when Ctrl-C or SIGTERM ends the process. @returns ends the waiting */
  onInterrupt(say: () => void): () => void
  watch: Watch
  exposeMetrics(session: Session, output: string | undefined): Promise<void>
  /** @returns the exit status */
  runInstaller(command: CommandOf<'install' | 'uninstall'>, isJson: boolean): Promise<number>
  runPlugin(command: CommandOf<'device-plugin'>): Promise<number>
}

/** Runs a verb that a person gives by hand: results on stdout, sentences on stderr, 0, 1 (failed, refused) or 2 (usage). */
export async function operate(world: World): Promise<number> {
  const isJson = world.argv.includes('--json')
  const fail = (message: string, status: number) => {
    if (isJson) world.write(jsonDocument({ verb: 'error', error: message }), STDOUT)
    else world.write(`modekeep: ${printable(message)}\n`, STDERR)
    return status
  }
  let command: Command
  try {
    command = parseCommand(world.argv, world.workingDirectory)
  } catch (error) {
    return fail(sentenceOf(error), USAGE)
  }
  try {
    return await carryOut(world, command, isJson)
  } catch (error) {
    return fail(sentenceOf(error), FAILED)
  }
}

function sentenceOf(error: unknown): string {
  return error instanceof Refusal ? error.message : `failed: ${messageOf(error)}`
}

async function carryOut(world: World, command: Command, isJson: boolean): Promise<number> {
  switch (command.verb) {
    case 'help':
    case 'version':
    case 'completion':
      world.write(aboutText(command, isJson, world.versions), STDOUT)
      return OK
    case 'install':
    case 'uninstall':
      return world.runInstaller(command, isJson)
    case 'device-plugin':
      return world.runPlugin(command)
  }
  if (!world.isRoot) throw new Refusal(`${command.verb} needs root: run it with sudo`)
  return command.verb === 'logs' ? showLogs(world, command, isJson) : work(world, command, isJson)
}

/** Also with an invalid configuration, whose faults are among what the log tells: the file's name may be right. */
async function showLogs(world: World, command: CommandOf<'logs'>, isJson: boolean): Promise<number> {
  const { config } = await world.readConfig()
  const colour = hasColour(world)
  const text = (raw: string) => (isJson ? `${jsonText(raw)}\n` : render([logLine(raw)], colour))
  await logs(world.fs, command, config.logFile, (raw) => world.write(text(raw), STDOUT))
  return OK
}

async function work(world: World, command: NodeCommand, isJson: boolean): Promise<number> {
  const { file, config, faults } = await world.readConfig()
  // Another stateDir than the node's would be another memory.
  if (faults.length > 0 && command.verb !== 'doctor') throw new Refusal(faults)
  const tell = (document: Document) =>
    world.write(isJson ? jsonDocument(document) : render(shown(document).lines(document), hasColour(world)), STDOUT)
  const log = new CallLog({ verb: command.verb, ...subjectOf(command) }, config.logLevel, (line) => {
    if (isChanging(command)) appendLine(world.fs, config.logFile, line)
  })
  const isWatched = !isJson && world.isTerminal(STDERR)
  const progress = new ProgressLine(command.verb, world.columns, (text) => isWatched && world.write(text, STDERR))
  const session: Session = {
    host: world.host,
    config,
    workerPool: world.workerPool(),
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
    progress: (counts) => progress.update(counts),
    ...(isWatched && { expect: (inodes) => progress.expect(inodes) }),
  }
  if (command.verb === 'heal' && command.isWatching) {
    await keepHealing(session, command, { fs: world.fs, watch: world.watch, configNow: () => validConfig(world), tell })
    return OK
  }
  if (command.verb === 'status' && command.metrics) {
    await world.exposeMetrics(session, command.metrics.output)
    return OK
  }
  const say = shown(command).interrupted?.(command)
  const endWaiting = world.onInterrupt(() => {
    progress.clear()
    if (say !== undefined) world.write(`modekeep: ${say}\n`, STDERR)
  })
  try {
    const document =
      command.verb === 'doctor'
        ? await doctor(session, { ...world, configuration: { file, faults } })
        : await run(session, command)
    log.end('Success')
    progress.clear()
    tell(document)
    const trouble = shown(document).trouble?.(document)
    if (trouble !== undefined && !isJson) world.write(`modekeep: ${trouble}\n`, STDERR)
    return trouble === undefined ? OK : FAILED
  } catch (error) {
    log.end('Failure', error)
    progress.clear()
    throw error
  } finally {
    endWaiting()
  }
}

async function validConfig(world: World): Promise<NodeConfig> {
  const { config, faults } = await world.readConfig()
  if (faults.length > 0) throw new Refusal(faults)
  return config
}

function hasColour({ isTerminal, env }: World): boolean {
  return isTerminal(STDOUT) && !env.NO_COLOR && env.TERM !== 'dumb'
}
