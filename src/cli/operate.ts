import { FAULT_ENTRIES } from '../errors/entries/index.ts'
import { escapeJson, escapeUnprintable } from '../errors/escape.ts'
import { renderFaultCodes } from '../errors/fault.ts'
import { formatError, Refusal } from '../errors/refusal.ts'
import { hasCallSucceeded } from '../kernel/system-error.ts'
import { createCallLog } from '../log/call-log.ts'
import { appendLogLine } from '../log/log-file.ts'
import { type CompletionNameKind, listFaultExplanations, listRecordedNames, summarizeMounts } from './commands/about.ts'
import { isJsonRequested, parseOperatorCommand } from './commands/arguments.ts'
import { runDoctor } from './commands/doctor.ts'
import { healAfterEachChange } from './commands/heal.ts'
import {
  type CommandDocument,
  type CommandOfVerb,
  getVerbOfCommand,
  type NodeCommand,
  type OperatorCommand,
  runVerb,
} from './commands/index.ts'
import { formatLogEntry, readNodeLog } from './commands/logs.ts'
import { pollStatus, skipUnchangedStatus } from './commands/status.ts'
import { runSupportBundle } from './commands/support-bundle.ts'
import type { OperatorContext } from './context.ts'
import { formatJsonDocument, formatOutputLines, type OutputLine } from './output/output.ts'
import { createProgressLine, formatTerminalScreen } from './output/progress.ts'
import { formatCompletionScript } from './usage/completion.ts'
import { formatFaultExplanations, formatHelp, formatHelpIntroduction, formatManualPage } from './usage/help.ts'

export const EXIT_SUCCESS = 0
export const EXIT_FAILURE = 1
const EXIT_USAGE_ERROR = 2

const STDOUT_FD = 1
const STDERR_FD = 2

/** Runs an operator's verb: results on stdout, messages on stderr. @returns 0, 1 (failed, refused) or 2 (usage) */
export async function runOperatorCommand(context: OperatorContext): Promise<number> {
  const isJson = isJsonRequested(context.argv)
  let failure = EXIT_USAGE_ERROR
  try {
    const command = parseOperatorCommand(context.argv, context.workingDirectory)
    failure = EXIT_FAILURE
    return await runParsedCommand(context, command, isJson)
  } catch (error) {
    const isRefusal = error instanceof Refusal
    const message = isRefusal ? `${error.message}${renderFaultCodes(error.faults)}` : `failed: ${formatError(error)}`
    if (!isJson || !tryWriteStdout(context, formatJsonDocument({ verb: 'error', error: message }))) {
      context.write(`modekeep: ${escapeUnprintable(message)}\n`, STDERR_FD)
    }
    return failure
  }
}

/** @returns false if stdout cannot be written */
function tryWriteStdout(context: OperatorContext, text: string): boolean {
  try {
    context.write(text, STDOUT_FD)
    return true
  } catch {
    return false
  }
}

async function runParsedCommand(context: OperatorContext, command: OperatorCommand, isJson: boolean): Promise<number> {
  const { verb } = command
  const { version, glibc } = context.versions
  const say = (text: string, facts: object) => {
    context.write(isJson ? formatJsonDocument({ verb, ...facts }) : text, STDOUT_FD)
    return EXIT_SUCCESS
  }
  switch (command.verb) {
    case 'help': {
      if (command.isIntroduction) return say(formatHelpIntroduction(version, await summarizeMounts(context)), {})
      const text = command.isManual
        ? formatManualPage(version)
        : formatHelp(command.topic, isJson ? undefined : context.columns(STDOUT_FD))
      return say(text, { topic: command.topic ?? null, text })
    }
    case 'version':
      return say(`modekeep ${version}${glibc === undefined ? '' : ` (glibc ${glibc})`}\n`, context.versions)
    case 'explain': {
      const codes = listFaultExplanations(command)
      return say(formatFaultExplanations(codes, context.columns(STDOUT_FD)), { codes })
    }
    case 'completion': {
      if (command.offer !== undefined) {
        const names = await readCompletionNames(context, command.offer)
        return say(formatOutputLines(names, false), { shell: null, names })
      }
      const text = formatCompletionScript(command.shell)
      return say(text, { shell: command.shell, text })
    }
    case 'install':
    case 'uninstall':
      return context.runInstaller(command, isJson)
    case 'migrate':
      return context.runMigration(command, isJson)
    case 'device-plugin':
      return context.runPlugin(command)
  }
  if (!context.isRoot) throw Refusal.of('command', `${verb} needs root`, 'run it with sudo')
  if (command.verb === 'csi') return context.runCsi(command)
  if (command.verb === 'nri') return context.runNri(command)
  return command.verb === 'logs' ? showNodeLogs(context, command, isJson) : runNodeCommand(context, command, isJson)
}

/** Completion shows no errors, and only root can read the records. */
async function readCompletionNames(context: OperatorContext, kind: CompletionNameKind): Promise<string[]> {
  const { host, isRoot, readConfig } = context
  if (kind === 'codes') return [...FAULT_ENTRIES.keys()].sort()
  if (!isRoot) return []
  const { config, faults } = await readConfig()
  return faults.length > 0 ? [] : listRecordedNames({ host, config }, kind)
}

/** Shows the log even with an invalid configuration: its faults are in the log, and the log's path may be right. */
async function showNodeLogs(
  context: OperatorContext,
  command: CommandOfVerb<'logs'>,
  isJson: boolean,
): Promise<number> {
  const { config } = await context.readConfig()
  const text = (raw: string) =>
    isJson
      ? `${escapeJson(raw)}\n`
      : formatOutputLines([formatLogEntry(raw)], isColourSupported(context), context.columns(STDOUT_FD))
  await readNodeLog(context.fs, command, config.logFile, (raw) => context.write(text(raw), STDOUT_FD))
  return EXIT_SUCCESS
}

async function runNodeCommand(context: OperatorContext, command: NodeCommand, isJson: boolean): Promise<number> {
  const { fs, host, watch } = context
  const { verb } = command
  const { file, config, faults } = await readNodeConfig(context, command)
  const { isLooking, lines, writesStdout, interrupted, trouble, hasTrouble } = getVerbOfCommand(command)
  const to = writesStdout?.(command) ? STDERR_FD : STDOUT_FD
  const isYaml = command.verb === 'status' && command.form === 'yaml'
  // The YAML formatter is loaded only on request.
  const formatRequested = isYaml
    ? (await import('./output/yaml.ts')).formatYamlDocument
    : isJson
      ? formatJsonDocument
      : undefined
  const formatDocument = (found: CommandDocument) => {
    const width = context.columns(to)
    return (
      formatRequested?.(found) ?? formatOutputLines(lines(found, { command, width }), isColourSupported(context), width)
    )
  }
  const printDocument = (document: CommandDocument) => context.write(formatDocument(document), to)
  const printLines = (shown: readonly OutputLine[]) => {
    if (!isJson) context.write(formatOutputLines(shown, isColourSupported(context), context.columns(to)), to)
  }
  const log = createCallLog({ verb, ...extractLogSubject(command) }, config.logLevel, (line) => {
    // Commands that change nothing are not logged.
    if (!isLooking && !('isDry' in command && command.isDry)) appendLogLine(fs, config.logFile, line)
  })
  const isWatched = !isJson && context.isTerminal(STDERR_FD)
  const { update, expect, clear } = createProgressLine(
    verb,
    () => context.columns(STDERR_FD) ?? 0,
    (text) => isWatched && context.write(text, STDERR_FD),
  )
  const { note, warn } = log
  const { isolatesWalks } = context
  const session = { host, config, isolatesWalks, note, warn, progress: update, ...(isWatched && { expect }) }
  if (command.verb === 'heal' && command.isWatching) {
    const configNow = async () => (await readNodeConfig(context, command)).config
    const { serveHealth, metrics } = context
    // A watch continues to repair even if stdout cannot be written.
    const printIfPossible = (found: CommandDocument) => void hasCallSucceeded(() => printDocument(found))
    using _worker = command.answersCalls ? context.answerCalls(config) : undefined
    await healAfterEachChange(session, command, { fs, watch, configNow, report: printIfPossible, serveHealth, metrics })
    return EXIT_SUCCESS
  }
  if (command.verb === 'status' && command.metrics) {
    await context.exposeMetrics(session, command.metrics.output)
    return EXIT_SUCCESS
  }
  if (command.verb === 'status' && command.isWatching) {
    // While a lookup runs, its library listens for signals too. A signal that arrives just when it stops listening is lost
    // unless this process listens itself.
    using _signals = context.onInterrupt(() => {})
    const rows = formatRequested === undefined ? context.rows(STDOUT_FD) : undefined
    const paint = (found: CommandDocument) =>
      context.write(formatTerminalScreen(formatDocument(found), context.rows(STDOUT_FD) ?? 0), STDOUT_FD)
    await pollStatus(() => runVerb(session, command), rows === undefined ? skipUnchangedStatus(printDocument) : paint)
    return EXIT_SUCCESS
  }
  const say = (sentence: string | undefined) => sentence && context.write(`modekeep: ${sentence}\n`, STDERR_FD)
  const interruptedMessage = interrupted?.(command)
  const ending = new AbortController()
  using _waiting = context.onInterrupt(() => {
    ending.abort()
    clear()
    say(interruptedMessage)
  })
  let found: CommandDocument
  try {
    const caller = {
      version: context.versions.version,
      isTerminal: context.isTerminal(STDOUT_FD),
      write: context.writeBytes,
      interrupted: ending.signal,
    }
    const doctorContext = { ...context, configuration: { file, faults } }
    if (command.verb === 'doctor') found = await runDoctor(session, doctorContext)
    else if (command.verb === 'support-bundle') {
      found = await runSupportBundle(session, command, { ...doctorContext, ...caller, print: printLines })
    } else found = await runVerb(session, command, caller)
  } catch (error) {
    log.end('Failure', error)
    clear()
    throw error
  }
  log.end('Success')
  clear()
  printDocument(found)
  const isTrouble = hasTrouble?.(found) ?? false
  if (isTrouble && !isJson) say(trouble)
  return isTrouble ? EXIT_FAILURE : EXIT_SUCCESS
}

/** Returns the subject of the log line. A verb that must resolve its volume first notes it itself. */
function extractLogSubject(command: NodeCommand): object {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command && !('beginning' in command.target) ? command.target : {}
}

/** Only verbs that report faults accept a faulty configuration, because another stateDir than the node's has other records. */
async function readNodeConfig(context: OperatorContext, command: NodeCommand) {
  const isDoctor = command.verb === 'doctor'
  const read = await context.readConfig(isDoctor ? command.config : undefined)
  if (read.faults.length > 0 && !isDoctor && command.verb !== 'support-bundle') throw new Refusal(read.faults)
  return read
}

function isColourSupported({ isTerminal, env }: OperatorContext): boolean {
  return isTerminal(STDOUT_FD) && !env.NO_COLOR && env.TERM !== 'dumb'
}
