import type * as NodeFs from 'node:fs'
import { succeeds } from '../host/file-error.ts'
import type { Host } from '../host/host.ts'
import { callLog } from '../log/call-log.ts'
import { appendLine } from '../log/log-file.ts'
import { jsonText, printable } from '../refusal/printable.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import type { NodeConfig } from '../request/defaults.ts'
import type { Session } from '../store/session.ts'
import { keepHealing, type Watch } from './actions/heal.ts'
import type { ServeHealth } from './actions/health.ts'
import { logs } from './actions/logs.ts'
import { mountedHere } from './actions/mounted-here.ts'
import { type OfferKind, offeredNames } from './actions/offer.ts'
import { keepLooking, whenChanged } from './actions/watch-status.ts'
import { doctor, type Patient } from './doctor/index.ts'
import { jsonDocument, render } from './text/output.ts'
import { progressLine } from './text/progress.ts'
import { screenOf } from './text/screen.ts'
import { completionScript } from './usage/completion.ts'
import { firstLook, helpText } from './usage/help.ts'
import { manualPage } from './usage/manual.ts'
import { parseCommand } from './verbs/command.ts'
import { type Command, type CommandOf, type Document, type NodeCommand, run, shown } from './verbs/index.ts'
import { isJsonWanted } from './verbs/json-wanted.ts'
import { logLine } from './verbs/logs.ts'

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
  /** modekeep's, and those of the runtime. */
  versions: { version: string; node: string; arch: string }
  host: Host
  /** For the log. */
  fs: typeof NodeFs
  isRoot: boolean
  /** @returns false: nobody reads any more @throws {Refusal} where stdout cannot be written */
  write(text: string, to: Stream): boolean
  /** To stdout, all of it. @throws where it cannot be written, or nobody reads any more */
  writeBytes(bytes: Uint8Array): Promise<void>
  isTerminal(stream: Stream): boolean
  /** How wide the terminal is that it writes to; undefined where it is none. */
  columns(stream: Stream): number | undefined
  /** How many lines it has; undefined where it is none. */
  rows(stream: Stream): number | undefined
  workingDirectory(): string
  /** The node's configuration as it is now, and every fault in its file. @param file in place of the node's */
  readConfig(file?: string): Promise<{ file: string; config: NodeConfig; faults: string[] }>
  /** Says something when Ctrl-C or SIGTERM ends the process, until it is disposed of. */
  onInterrupt(say: () => void): Disposable
  watch: Watch
  serveHealth: ServeHealth
  /** A process of its own makes each walk: this one must not wait for a directory that is locked. */
  isolatesWalks?: true
  /** In Prometheus' text format. */
  metrics(session: Session): Promise<string>
  exposeMetrics(session: Session, output: string | undefined): Promise<void>
  /** @returns the exit status */
  runInstaller(command: CommandOf<'install' | 'uninstall'>, isJson: boolean): Promise<number>
  /** @returns the exit status */
  runMigration(command: CommandOf<'migrate'>, isJson: boolean): Promise<number>
  runPlugin(command: CommandOf<'device-plugin'>): Promise<number>
  runCsi(command: CommandOf<'csi'>): Promise<number>
  runNri(command: CommandOf<'nri'>): Promise<number>
}

/** Runs a verb given by hand: results on stdout, sentences on stderr, 0, 1 (failed, refused) or 2 (usage). */
export async function operate(world: World): Promise<number> {
  const isJson = isJsonWanted(world.argv)
  let failure = USAGE
  try {
    const command = parseCommand(world.argv, world.workingDirectory)
    failure = FAILED
    return await carryOut(world, command, isJson)
  } catch (error) {
    const message = error instanceof Refusal ? error.message : `failed: ${messageOf(error)}`
    if (!isJson || !isWritten(world, jsonDocument({ verb: 'error', error: message }))) {
      world.write(`modekeep: ${printable(message)}\n`, STDERR)
    }
    return failure
  }
}

/** @returns false where stdout cannot be written */
function isWritten(world: World, text: string): boolean {
  try {
    world.write(text, STDOUT)
    return true
  } catch {
    return false
  }
}

async function carryOut(world: World, command: Command, isJson: boolean): Promise<number> {
  const { verb } = command
  const { version } = world.versions
  const say = (text: string, facts: object) => {
    world.write(isJson ? jsonDocument({ verb, ...facts }) : text, STDOUT)
    return OK
  }
  switch (command.verb) {
    case 'help': {
      if (command.isFirstLook) return say(firstLook(version, await mountedHere(world)), {})
      const text = command.isManual
        ? manualPage(version)
        : helpText(command.topic, isJson ? undefined : world.columns(STDOUT))
      return say(text, { topic: command.topic ?? null, text })
    }
    case 'version':
      return say(`modekeep ${version}\n`, world.versions)
    case 'completion': {
      if (command.offer !== undefined) {
        // Who completes a word is to see no fault; root alone can read the records.
        const names = world.isRoot ? await offered(world, command.offer) : []
        return say(render(names, false), { shell: null, names })
      }
      const text = completionScript(command.shell)
      return say(text, { shell: command.shell, text })
    }
    case 'install':
    case 'uninstall':
      return world.runInstaller(command, isJson)
    case 'migrate':
      return world.runMigration(command, isJson)
    case 'device-plugin':
      return world.runPlugin(command)
  }
  if (!world.isRoot) throw new Refusal(`${verb} needs root: run it with sudo`)
  if (command.verb === 'csi') return world.runCsi(command)
  if (command.verb === 'nri') return world.runNri(command)
  return command.verb === 'logs' ? showLogs(world, command, isJson) : work(world, command, isJson)
}

async function offered({ host, readConfig }: World, kind: OfferKind): Promise<string[]> {
  const { config, faults } = await readConfig()
  return faults.length > 0 ? [] : offeredNames({ host, config }, kind)
}

/** Also with an invalid configuration, whose faults are among what the log tells: the file's name may be right. */
async function showLogs(world: World, command: CommandOf<'logs'>, isJson: boolean): Promise<number> {
  const { config } = await world.readConfig()
  const text = (raw: string) =>
    isJson ? `${jsonText(raw)}\n` : render([logLine(raw)], hasColour(world), world.columns(STDOUT))
  await logs(world.fs, command, config.logFile, (raw) => world.write(text(raw), STDOUT))
  return OK
}

async function work(world: World, command: NodeCommand, isJson: boolean): Promise<number> {
  const { fs, host, watch } = world
  const { verb } = command
  const { file, config, faults } = await configFor(world, command)
  const { isLooking, lines, writesStdout, interrupted, trouble, hasTrouble } = shown(command)
  const to = writesStdout?.(command) ? STDERR : STDOUT
  const isYaml = command.verb === 'status' && command.form === 'yaml'
  // A parser is loaded only for who wants it.
  const document = isYaml ? (await import('./text/yaml.ts')).yamlDocument : isJson ? jsonDocument : undefined
  const textOf = (found: Document) => {
    const width = world.columns(to)
    return document?.(found) ?? render(lines(found, { command, width }), hasColour(world), width)
  }
  const tell = (found: Document) => world.write(textOf(found), to)
  const log = callLog({ verb, ...subjectOf(command) }, config.logLevel, (line) => {
    // What changes nothing leaves no line.
    if (!isLooking && !('isDry' in command && command.isDry)) appendLine(fs, config.logFile, line)
  })
  const isWatched = !isJson && world.isTerminal(STDERR)
  const { update, expect, clear } = progressLine(
    verb,
    () => world.columns(STDERR) ?? 0,
    (text) => isWatched && world.write(text, STDERR),
  )
  const { note, warn } = log
  const { isolatesWalks } = world
  const session = { host, config, isolatesWalks, note, warn, progress: update, ...(isWatched && { expect }) }
  if (command.verb === 'heal' && command.isWatching) {
    const configNow = async () => (await configFor(world, command)).config
    const { serveHealth, metrics } = world
    // A watch goes on repairing where nobody can be told of it.
    const tellWatched = (found: Document) => void succeeds(() => tell(found))
    await keepHealing(session, command, { fs, watch, configNow, tell: tellWatched, serveHealth, metrics })
    return OK
  }
  if (command.verb === 'status' && command.metrics) {
    await world.exposeMetrics(session, command.metrics.output)
    return OK
  }
  if (command.verb === 'status' && command.isWatching) {
    const rows = document === undefined ? world.rows(STDOUT) : undefined
    const paint = (found: Document) => world.write(screenOf(textOf(found), world.rows(STDOUT) ?? 0), STDOUT)
    await keepLooking(() => run(session, command), rows === undefined ? whenChanged(tell) : paint)
    return OK
  }
  const say = (sentence: string | undefined) => sentence && world.write(`modekeep: ${sentence}\n`, STDERR)
  const standing = interrupted?.(command)
  const ending = new AbortController()
  using _waiting = world.onInterrupt(() => {
    ending.abort()
    clear()
    say(standing)
  })
  let found: Document
  try {
    const isDoctor = command.verb === 'doctor'
    const caller = {
      version: world.versions.version,
      isTerminal: world.isTerminal(STDOUT),
      write: world.writeBytes,
      interrupted: ending.signal,
    }
    const patient = { ...world, configuration: { file, faults } }
    found = isDoctor ? await doctor(session, patient) : await run(session, command, caller)
  } catch (error) {
    log.end('Failure', error)
    clear()
    throw error
  }
  log.end('Success')
  clear()
  tell(found)
  const isTrouble = hasTrouble?.(found) ?? false
  if (isTrouble && !isJson) say(trouble)
  return isTrouble ? FAILED : OK
}

/** What the log's line is about; a verb that has to look first which volume is meant notes that itself. */
function subjectOf(command: NodeCommand): object {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command && !('beginning' in command.target) ? command.target : {}
}

/** Another stateDir than the node's would be another memory: only doctor works with a faulty configuration. */
async function configFor(world: World, command: NodeCommand) {
  const isDoctor = command.verb === 'doctor'
  const read = await world.readConfig(isDoctor ? command.config : undefined)
  if (read.faults.length > 0 && !isDoctor) throw new Refusal(read.faults)
  return read
}

function hasColour({ isTerminal, env }: World): boolean {
  return isTerminal(STDOUT) && !env.NO_COLOR && env.TERM !== 'dumb'
}
