import { succeeds } from '../host/file-error.ts'
import { callLog } from '../log/call-log.ts'
import { appendLine } from '../log/log-file.ts'
import { jsonText, printable } from '../refusal/printable.ts'
import { messageOf, Refusal } from '../refusal/refusal.ts'
import { keepHealing } from './actions/heal.ts'
import { readLog } from './actions/logs.ts'
import { summarizeMounts } from './actions/mount-summary.ts'
import { listRecordedNames, type RecordedNameKind } from './actions/recorded-names.ts'
import { pollStatus, skipUnchanged } from './actions/watch-status.ts'
import type { OperatorContext } from './context.ts'
import { runDoctor } from './doctor/index.ts'
import { formatJsonDocument, render } from './text/output.ts'
import { createProgressLine } from './text/progress.ts'
import { formatScreen } from './text/screen.ts'
import { formatCompletionScript } from './usage/completion.ts'
import { formatHelp, formatIntroduction } from './usage/help.ts'
import { formatManualPage } from './usage/manual.ts'
import { parseCommand } from './verbs/command.ts'
import {
  type Command,
  type CommandOf,
  type Document,
  getDocumentVerb,
  type NodeCommand,
  runVerb,
} from './verbs/index.ts'
import { isJsonRequested } from './verbs/json-requested.ts'
import { formatEntryLine } from './verbs/logs.ts'

export const OK = 0
export const FAILED = 1
const USAGE = 2

const STDOUT = 1
const STDERR = 2

/** Runs a verb given by hand: results on stdout, sentences on stderr, 0, 1 (failed, refused) or 2 (usage). */
export async function operate(world: OperatorContext): Promise<number> {
  const isJson = isJsonRequested(world.argv)
  let failure = USAGE
  try {
    const command = parseCommand(world.argv, world.workingDirectory)
    failure = FAILED
    return await runCommand(world, command, isJson)
  } catch (error) {
    const message = error instanceof Refusal ? error.message : `failed: ${messageOf(error)}`
    if (!isJson || !tryWrite(world, formatJsonDocument({ verb: 'error', error: message }))) {
      world.write(`modekeep: ${printable(message)}\n`, STDERR)
    }
    return failure
  }
}

/** @returns false where stdout cannot be written */
function tryWrite(world: OperatorContext, text: string): boolean {
  try {
    world.write(text, STDOUT)
    return true
  } catch {
    return false
  }
}

async function runCommand(world: OperatorContext, command: Command, isJson: boolean): Promise<number> {
  const { verb } = command
  const { version } = world.versions
  const say = (text: string, facts: object) => {
    world.write(isJson ? formatJsonDocument({ verb, ...facts }) : text, STDOUT)
    return OK
  }
  switch (command.verb) {
    case 'help': {
      if (command.isIntroduction) return say(formatIntroduction(version, await summarizeMounts(world)), {})
      const text = command.isManual
        ? formatManualPage(version)
        : formatHelp(command.topic, isJson ? undefined : world.columns(STDOUT))
      return say(text, { topic: command.topic ?? null, text })
    }
    case 'version':
      return say(`modekeep ${version}\n`, world.versions)
    case 'completion': {
      if (command.offer !== undefined) {
        // Who completes a word is to see no fault; root alone can read the records.
        const names = world.isRoot ? await readOfferedNames(world, command.offer) : []
        return say(render(names, false), { shell: null, names })
      }
      const text = formatCompletionScript(command.shell)
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
  return command.verb === 'logs' ? showLogs(world, command, isJson) : runNodeCommand(world, command, isJson)
}

async function readOfferedNames({ host, readConfig }: OperatorContext, kind: RecordedNameKind): Promise<string[]> {
  const { config, faults } = await readConfig()
  return faults.length > 0 ? [] : listRecordedNames({ host, config }, kind)
}

/** Also with an invalid configuration, whose faults are among what the log tells: the file's name may be right. */
async function showLogs(world: OperatorContext, command: CommandOf<'logs'>, isJson: boolean): Promise<number> {
  const { config } = await world.readConfig()
  const text = (raw: string) =>
    isJson ? `${jsonText(raw)}\n` : render([formatEntryLine(raw)], hasColour(world), world.columns(STDOUT))
  await readLog(world.fs, command, config.logFile, (raw) => world.write(text(raw), STDOUT))
  return OK
}

async function runNodeCommand(world: OperatorContext, command: NodeCommand, isJson: boolean): Promise<number> {
  const { fs, host, watch } = world
  const { verb } = command
  const { file, config, faults } = await readNodeConfig(world, command)
  const { isLooking, lines, writesStdout, interrupted, trouble, hasTrouble } = getDocumentVerb(command)
  const to = writesStdout?.(command) ? STDERR : STDOUT
  const isYaml = command.verb === 'status' && command.form === 'yaml'
  // A parser is loaded only for who wants it.
  const document = isYaml
    ? (await import('./text/yaml.ts')).formatYamlDocument
    : isJson
      ? formatJsonDocument
      : undefined
  const formatDocument = (found: Document) => {
    const width = world.columns(to)
    return document?.(found) ?? render(lines(found, { command, width }), hasColour(world), width)
  }
  const tell = (found: Document) => world.write(formatDocument(found), to)
  const log = callLog({ verb, ...extractLogSubject(command) }, config.logLevel, (line) => {
    // What changes nothing leaves no line.
    if (!isLooking && !('isDry' in command && command.isDry)) appendLine(fs, config.logFile, line)
  })
  const isWatched = !isJson && world.isTerminal(STDERR)
  const { update, expect, clear } = createProgressLine(
    verb,
    () => world.columns(STDERR) ?? 0,
    (text) => isWatched && world.write(text, STDERR),
  )
  const { note, warn } = log
  const { isolatesWalks } = world
  const session = { host, config, isolatesWalks, note, warn, progress: update, ...(isWatched && { expect }) }
  if (command.verb === 'heal' && command.isWatching) {
    const configNow = async () => (await readNodeConfig(world, command)).config
    const { serveHealth, metrics } = world
    // A watch goes on repairing where nobody can be told of it.
    const tellWatched = (found: Document) => void succeeds(() => tell(found))
    await keepHealing(session, command, { fs, watch, configNow, report: tellWatched, serveHealth, metrics })
    return OK
  }
  if (command.verb === 'status' && command.metrics) {
    await world.exposeMetrics(session, command.metrics.output)
    return OK
  }
  if (command.verb === 'status' && command.isWatching) {
    const rows = document === undefined ? world.rows(STDOUT) : undefined
    const paint = (found: Document) => world.write(formatScreen(formatDocument(found), world.rows(STDOUT) ?? 0), STDOUT)
    await pollStatus(() => runVerb(session, command), rows === undefined ? skipUnchanged(tell) : paint)
    return OK
  }
  const say = (sentence: string | undefined) => sentence && world.write(`modekeep: ${sentence}\n`, STDERR)
  const interruptedMessage = interrupted?.(command)
  const ending = new AbortController()
  using _waiting = world.onInterrupt(() => {
    ending.abort()
    clear()
    say(interruptedMessage)
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
    found = isDoctor ? await runDoctor(session, patient) : await runVerb(session, command, caller)
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
function extractLogSubject(command: NodeCommand): object {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command && !('beginning' in command.target) ? command.target : {}
}

/** Another stateDir than the node's would be another memory: only doctor works with a faulty configuration. */
async function readNodeConfig(world: OperatorContext, command: NodeCommand) {
  const isDoctor = command.verb === 'doctor'
  const read = await world.readConfig(isDoctor ? command.config : undefined)
  if (read.faults.length > 0 && !isDoctor) throw new Refusal(read.faults)
  return read
}

function hasColour({ isTerminal, env }: OperatorContext): boolean {
  return isTerminal(STDOUT) && !env.NO_COLOR && env.TERM !== 'dumb'
}
