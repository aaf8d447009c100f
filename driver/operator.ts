import * as fs from 'node:fs'
import { isatty } from 'node:tty'
import { linuxHost } from '../src/host/linux/index.ts'
import { CallLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import type { Document } from '../src/operator/actions/document.ts'
import { logs } from '../src/operator/actions/logs.ts'
import { run } from '../src/operator/actions/run.ts'
import { linesOf } from '../src/operator/text/document.ts'
import { logLine } from '../src/operator/text/log.ts'
import { jsonLine, jsonText, printable } from '../src/operator/text/printable.ts'
import { render } from '../src/operator/text/render.ts'
import { troubleIn } from '../src/operator/text/trouble.ts'
import { type Command, type LogsCommand, parseCommand, type Work } from '../src/operator/verbs/command.ts'
import { Refusal } from '../src/refusal/refusal.ts'
import type { NodeConfig } from '../src/request/defaults.ts'
import type { Session } from '../src/store/session.ts'
import { aboutText } from './about.ts'
import { configFile, readConfig } from './config.ts'
import { diagnose } from './doctor.ts'
import { sayWhenInterrupted } from './interrupted.ts'
import { keepHealing } from './keep-healing.ts'
import { progressLine } from './progress.ts'
import { writeAll } from './streams.ts'
import { workerPool } from './worker-pool.ts'

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
  try {
    if (command.verb === 'help' || command.verb === 'version' || command.verb === 'completion') {
      writeAll(aboutText(command, json), STDOUT)
      return OK
    }
    if (process.geteuid?.() !== 0) throw new Refusal(`${command.verb} needs root: run it with sudo`)
    return command.verb === 'logs' ? await showLogs(command, json, env) : await work(command, json, env)
  } catch (error) {
    return fail(messageOf(error), FAILED)
  }
}

function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.message
  return `failed: ${error instanceof Error ? error.message : String(error)}`
}

/** Also with an invalid configuration, whose faults are among what the log tells: the file's name may be right. */
async function showLogs(command: LogsCommand, json: boolean, env: NodeJS.ProcessEnv): Promise<number> {
  const { config } = await readConfig(env)
  const colour = hasColour(STDOUT, env)
  const text = (raw: string) => (json ? `${jsonText(raw)}\n` : render([logLine(raw)], colour))
  await logs(fs, command, config.logFile, (raw) => writeAll(text(raw), STDOUT))
  return OK
}

async function work(command: Work, json: boolean, env: NodeJS.ProcessEnv): Promise<number> {
  const tell = (document: Document) =>
    writeAll(json ? jsonLine(document) : render(linesOf(document), hasColour(STDOUT, env)), STDOUT)
  const { config, faults } = await readConfig(env)
  // Another stateDir than the node's would be another memory.
  if (faults.length > 0 && command.verb !== 'doctor') throw new Refusal(faults)
  const { verb } = command
  const log = new CallLog({ verb, ...subjectOf(command) }, config.logLevel, (line) => {
    if (!onlyLooks(command)) appendLine(fs, config.logFile, line)
  })
  const isWatched = !json && isatty(STDERR)
  const progress = progressLine(isWatched, verb)
  const session: Session = {
    host: linuxHost,
    config,
    workerPool: workerPool(),
    note: (facts) => log.note(facts),
    warn: (message) => log.warn(message),
    progress: progress.update,
    ...(isWatched && { expect: progress.expect }),
  }
  if (command.verb === 'heal' && command.isWatching) {
    await keepHealing(session, command, () => wholeConfig(env), tell)
    return OK
  }
  if (command.verb === 'status' && command.metrics) {
    await (await import('./metrics.ts')).exposeMetrics(session, command.metrics.output)
    return OK
  }
  const endWaiting = sayWhenInterrupted(command, progress.clear)
  try {
    const document =
      command.verb === 'doctor'
        ? await diagnose(session, { file: configFile(env), faults })
        : await run(session, command)
    log.end('Success')
    progress.clear()
    tell(document)
    const trouble = troubleIn(document)
    if (trouble !== undefined && !json) writeAll(`modekeep: ${trouble}\n`, STDERR)
    return trouble === undefined ? OK : FAILED
  } catch (error) {
    log.end('Failure', error)
    progress.clear()
    throw error
  } finally {
    endWaiting()
  }
}

async function wholeConfig(env: NodeJS.ProcessEnv): Promise<NodeConfig> {
  const { config, faults } = await readConfig(env)
  if (faults.length > 0) throw new Refusal(faults)
  return config
}

function subjectOf(command: Work): { directory?: string; volume?: string } {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command ? command.target : {}
}

function onlyLooks(command: Work): boolean {
  return (
    command.verb === 'plan' ||
    command.verb === 'status' ||
    command.verb === 'doctor' ||
    ('isDry' in command && command.isDry)
  )
}

function hasColour(stream: number, env: NodeJS.ProcessEnv): boolean {
  return isatty(stream) && !env.NO_COLOR && env.TERM !== 'dumb'
}
