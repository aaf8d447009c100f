import * as fs from 'node:fs'
import { isatty } from 'node:tty'
import type { Session } from '../src/apply/session.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { CallLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import { type Command, parseCommand, type Work } from '../src/operator/command.ts'
import type { Document } from '../src/operator/document.ts'
import { helpText } from '../src/operator/help.ts'
import { jsonLine, printable } from '../src/operator/printable.ts'
import { render } from '../src/operator/render.ts'
import { run } from '../src/operator/run.ts'
import { linesOf } from '../src/operator/text.ts'
import type { NodeConfig } from '../src/protocol/defaults.ts'
import { Refusal } from '../src/protocol/refusal.ts'
import { readConfig } from './config.ts'
import { crew } from './crew.ts'
import { keepHealing } from './keep-healing.ts'
import { progressLine } from './progress.ts'
import { writeAll } from './streams.ts'
import { VERSION } from './version.ts'

const OK = 0
const FAILED = 1
const USAGE = 2
const STDOUT = 1
const STDERR = 2

/** Runs a verb that a person gives by hand: results on stdout, sentences on stderr, 0, 1 (failed, refused) or 2 (usage). */
export async function operate(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const json = argv.includes('--json')
  const fail = (message: string, code: number) => {
    if (json) writeAll(jsonLine({ error: message }), STDOUT)
    else writeAll(`modekeep: ${printable(message)}\n`, STDERR)
    return code
  }
  let command: Command
  try {
    command = parseCommand(argv, () => process.cwd())
  } catch (error) {
    return fail(messageOf(error), USAGE)
  }
  if (command.verb === 'help' || command.verb === 'version') {
    writeAll(command.verb === 'help' ? helpText(command.topic) : `modekeep ${VERSION}\n`, STDOUT)
    return OK
  }
  try {
    return await work(command, json, env)
  } catch (error) {
    return fail(messageOf(error), FAILED)
  }
}

function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.message
  return `failed: ${error instanceof Error ? error.message : String(error)}`
}

async function work(command: Work, json: boolean, env: NodeJS.ProcessEnv): Promise<number> {
  const { verb } = command
  if (process.geteuid?.() !== 0) throw new Refusal(`${verb} needs root: run it with sudo`)
  const config = await wholeConfig(env)
  const about = 'directory' in command ? { verb, directory: command.directory } : { verb }
  const log = new CallLog(about, config.logLevel, (line) => {
    if (!onlyLooks(command)) appendLine(fs, config.logFile, line)
  })
  const progress = progressLine(!json && isatty(STDERR), verb)
  const session: Session = {
    host: linuxHost,
    config,
    crew: crew(),
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
    progress: progress.update,
  }
  if (command.verb === 'heal' && command.isWatching) {
    await keepHealing(
      session,
      command,
      () => wholeConfig(env),
      (document) => writeAll(json ? jsonLine(document) : render(linesOf(document), hasColour(STDOUT, env)), STDOUT),
    )
    return OK
  }
  if (command.verb === 'status' && command.metrics) {
    await (await import('./metrics.ts')).exposeMetrics(session, command.metrics.output)
    return OK
  }
  try {
    const document = await run(session, command)
    log.end('Success')
    progress.clear()
    writeAll(json ? jsonLine(document) : render(linesOf(document), hasColour(STDOUT, env)), STDOUT)
    const trouble = troubleIn(document)
    if (trouble !== undefined && !json) writeAll(`modekeep: ${trouble}\n`, STDERR)
    return trouble === undefined ? OK : FAILED
  } catch (error) {
    log.end('Failure', error)
    progress.clear()
    throw error
  }
}

/** Another stateDir than the node's would be another memory. */
async function wholeConfig(env: NodeJS.ProcessEnv): Promise<NodeConfig> {
  const { config, faults } = await readConfig(env)
  if (faults.length > 0) throw new Refusal(faults)
  return config
}

function onlyLooks(command: Work): boolean {
  return command.verb === 'plan' || command.verb === 'status' || (command.verb === 'heal' && command.isDry)
}

/** What makes a verb that was carried out a failure all the same. */
function troubleIn(document: Document): string | undefined {
  if (document.verb === 'restore' && document.outcome === 'unfinished') {
    return 'not all could be put back; it stays recorded: mend the cause and restore again'
  }
  if (document.verb === 'heal' && document.mounts.some(({ outcome }) => outcome === 'failed')) {
    return 'not every mount could be mended: the reasons are above'
  }
  return undefined
}

function hasColour(stream: number, env: NodeJS.ProcessEnv): boolean {
  return isatty(stream) && !env.NO_COLOR && env.TERM !== 'dumb'
}
