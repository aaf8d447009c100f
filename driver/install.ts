import { constants } from 'node:os'
import { isatty } from 'node:tty'
import type { InstallCommand, UninstallCommand } from '../src/cli/commands/install.ts'
import { installModekeep, uninstallModekeep } from '../src/cli/install/index.ts'
import { createInstallRefusal, type InstallerRun } from '../src/cli/install/site.ts'
import { formatJsonDocument } from '../src/cli/output/output.ts'
import { escapeUnprintable } from '../src/errors/escape.ts'
import { renderFault, renderFaultCodes } from '../src/errors/fault.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { linuxAdministration } from '../src/kernel/linux/administration.ts'
import { printResult, STDERR, STDOUT, writeWholeText } from './streams.ts'

const EXIT_SUCCESS = 0
const EXIT_FAILURE = 1

/** Installs or uninstalls, and prints each step to stdout. @returns the exit status; for a signal, 128 plus its number */
export async function runInstaller(
  command: InstallCommand | UninstallCommand,
  json: boolean,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  // Users other than root may read what is created here, but not write it.
  process.umask(0o022)
  const stopping = new AbortController()
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort(signal))
  const steps: { step: string; text: string }[] = []
  const warnings: string[] = []
  let unwritten: unknown
  // An installation continues even if its steps cannot be printed.
  const say = (text: string) => {
    try {
      printResult(text)
    } catch (error) {
      unwritten = error
    }
  }
  const job = {
    admin: linuxAdministration,
    executable: process.getBuiltinModule('node:sea').isSea() ? process.execPath : undefined,
    report(step: string, text: string) {
      steps.push({ step, text })
      if (!json) say(`${escapeUnprintable(`${step.padEnd(11)} ${text}`)}\n`)
    },
    warn(text: string) {
      warnings.push(text)
      if (!json) writeWholeText(`${colourWord('warning:', '33', env)} ${escapeUnprintable(text)}\n`, STDERR)
    },
    stop: stopping.signal,
  } satisfies Omit<InstallerRun, 'command'>
  try {
    if (!command.isDry && process.geteuid?.() !== 0) {
      throw createInstallRefusal(['this needs root', 'run it with sudo, or look first with --dry-run'])
    }
    if (command.verb === 'install') await installModekeep({ ...job, command })
    else await uninstallModekeep({ ...job, command })
    if (json) say(formatJsonDocument({ verb: command.verb, isDry: command.isDry, steps, warnings }))
    if (unwritten !== undefined) throw unwritten
    return EXIT_SUCCESS
  } catch (error) {
    if (stopping.signal.aborted) return 128 + constants.signals[stopping.signal.reason as NodeJS.Signals]
    printInstallerFault(
      error instanceof Refusal ? renderRefusalLines(error) : [formatUnexpectedError(error)],
      json,
      env,
    )
    return EXIT_FAILURE
  }
}

/** Renders the fault and its remedies as a line each. The last one ends with the code. */
function renderRefusalLines({ faults }: Refusal): string[] {
  const lines = faults.map((fault) => renderFault(fault))
  return [...lines.slice(0, -1), `${lines.at(-1)}${renderFaultCodes(faults)}`]
}

/** Prints the fault, and below it the remedies. */
function printInstallerFault(sentences: readonly string[], json: boolean, env: NodeJS.ProcessEnv): void {
  if (json) writeWholeText(formatJsonDocument({ verb: 'error', error: sentences.join('; ') }), STDOUT)
  else
    writeWholeText(`${colourWord('error:', '31', env)} ${sentences.map(escapeUnprintable).join('\n       ')}\n`, STDERR)
}

function formatUnexpectedError(error: unknown): string {
  return `stopped, as something failed: ${formatError(error)}`
}

function colourWord(word: string, style: string, { NO_COLOR, TERM = 'dumb' }: NodeJS.ProcessEnv): string {
  return isatty(STDERR) && !NO_COLOR && TERM !== 'dumb' ? `\x1b[${style}m${word}\x1b[0m` : word
}
