import { escapeJson } from '../../errors/escape.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { getErrno } from '../../kernel/host.ts'
import { refuseOtherMountNamespace } from '../../repair/state.ts'
import { findRunningPlugin } from '../../state/process-records.ts'
import type { Session } from '../../state/session.ts'
import { readContainerRuntime } from '../doctor/node.ts'
import { alignColumns, formatJsonDocument, type OutputLine, quoteForShell } from '../output/output.ts'
import {
  type ArchivedFile,
  archiveBundle,
  type BundleFile,
  type BundlePart,
  collectBundle,
  type PartProblem,
} from '../support-bundle/bundle.ts'
import { readMountTable, readNewestLogLines, readRecords, summarizeJournals } from '../support-bundle/node-files.ts'
import { redactDocument, redactValue } from '../support-bundle/redact.ts'
import { type DoctorContext, runDoctor } from './doctor.ts'
import { readPathOption } from './operands.ts'
import { assertWritableOutput, STDOUT_FILE_NAME, writeOutputPieces } from './output-file.ts'
import { readNodeStatus } from './status-document.ts'
import type { DocumentVerb, OperatorProcess } from './verb.ts'

/** @property output the file, or '-' for stdout; undefined: a new file in `directory` */
export interface SupportBundleCommand {
  verb: 'support-bundle'
  output: string | undefined
  directory: string
}

export interface SupportBundleDocument {
  verb: 'support-bundle'
  /** Path of the bundle; '-' is stdout. */
  file: string
  bytes: number
  /** `partly written`: `errors` has what could not be read. */
  outcome: 'written' | 'partly written'
  files: ArchivedFile[]
  errors: { source: string; error: string }[]
  limits: { source: string; leftOut: number }[]
}

export const supportBundleVerb: DocumentVerb<SupportBundleCommand, SupportBundleDocument> = {
  summary: 'write a tar file about this node, for an issue',
  text: [
    'Writes versions, doctor, status, the newest 2 MiB of the log, the mount table, the records, the sizes of journals ' +
      'and the configuration into a tar file with mode 0600. Lists its files before it writes them. Changes nothing else.',
    'Replaces values of keys and options such as password, user, token and secret, credentials in sources, and keys with ' +
      '[redacted]. Leaves out the journals, which name files in volumes. Messages and records still have paths, sources and ' +
      'names of pods, and a secret of an unknown form is not replaced: look through the files before you publish them.',
    'A part that cannot be read is named in errors.txt, and the exit status is 1.',
  ],
  options: {
    output:
      'this file, which must not exist; "-": stdout (default: modekeep-support-HOST-TIME.tar in the working directory)',
  },
  examples: ['modekeep support-bundle', 'modekeep support-bundle --output - > bundle.tar'],
  failure: 'a part could not be read',
  isLooking: true,
  read(args) {
    const { given, refuse, workingDirectory } = args
    const isStdout = given.get('output') === STDOUT_FILE_NAME
    if (given.has('json') && isStdout) refuse('--json needs stdout for its document', 'write to --output FILE')
    const output = isStdout ? STDOUT_FILE_NAME : readPathOption('output', args)
    return { verb: 'support-bundle', output, directory: output === undefined ? workingDirectory() : '' }
  },
  writesStdout: ({ output }) => output === STDOUT_FILE_NAME,
  lines({ file, bytes, outcome, files, errors, limits }) {
    const name = file === STDOUT_FILE_NAME ? 'stdout' : quoteForShell(file)
    return [
      { text: `${name}: ${outcome}, ${bytes} bytes, ${files.length} files`, style: 'strong' },
      ...limits.map(({ source, leftOut }): OutputLine => `left out of ${source}: ${leftOut} files`),
      ...errors.map(({ source, error }): OutputLine => ({ text: `not read: ${source}: ${error}`, style: 'notice' })),
    ]
  },
  trouble: 'parts could not be read: errors.txt in the bundle names them',
  hasTrouble: ({ errors }) => errors.length > 0,
  interrupted: ({ output }) =>
    output === STDOUT_FILE_NAME ? 'interrupted: the bundle is not complete' : 'interrupted: no bundle was written',
}

/** Input of the bundle in addition to the session. */
export interface SupportBundleContext extends DoctorContext, Omit<OperatorProcess, 'version'> {
  /** Prints lines before the document. */
  print(lines: readonly OutputLine[]): void
  /** Overrides the time limit of each part. */
  partTimeoutMs?: number
}

/** Collects the parts, lists them, and writes the bundle. @throws {Refusal} if the output exists */
export async function runSupportBundle(
  session: Session,
  { output, directory }: SupportBundleCommand,
  context: SupportBundleContext,
): Promise<SupportBundleDocument> {
  const now = new Date()
  const name = formatBundleName(context.diagnosis.hostName(), now)
  const file = output ?? `${directory}/${name}.tar`
  const target = { file, isForced: false }
  assertWritableOutput(session, target, context, 'name another file with --output')
  const bundle = await collectBundle(listBundleParts(session, context), context.partTimeoutMs)
  const { archive, files } = archiveBundle(bundle, name, Math.floor(now.getTime() / 1000))
  context.print(formatFileList(file, files))
  const bytes = await writeOutputPieces(session, [archive], target, context).catch((error) => {
    if (getErrno(error) !== 'EEXIST') throw error
    throw Refusal.of('command', `${quoteValue(file)} is there already`, 'name another file with --output')
  })
  const { errors, limits } = bundle
  const outcome = errors.length === 0 ? 'written' : 'partly written'
  return { verb: 'support-bundle', file, bytes, outcome, files, errors, limits }
}

/** A host name may have 64 characters, and is a part of a path. */
function formatBundleName(hostName: string, now: Date): string {
  const host = hostName.replaceAll(/[^A-Za-z0-9-]+/g, '-').slice(0, 64)
  return `modekeep-support-${host}-${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
}

function formatFileList(file: string, files: readonly ArchivedFile[]): OutputLine[] {
  const rows = files.map(({ path, bytes, source, isCut }) => [path, `${bytes}`, source + (isCut ? ' (a part)' : '')])
  const name = file === STDOUT_FILE_NAME ? 'the bundle' : quoteForShell(file)
  return [
    { text: `Files in ${name}. Look through them before you publish them:`, style: 'strong' },
    ...alignColumns([['path', 'bytes', 'source'], ...rows]).map((row) => `  ${row}`),
  ]
}

function listBundleParts(session: Session, context: SupportBundleContext): BundlePart[] {
  const { host, config } = session
  const { configuration } = context
  const createDocumentPart = (path: string, source: string, read: () => Promise<string>): BundlePart => ({
    source,
    read: async () => [{ path, source, text: await read() }],
  })
  return [
    createDocumentPart('versions.json', 'versions', async () => formatFacts(await readVersions(session, context))),
    createDocumentPart('doctor.json', 'modekeep doctor', async () =>
      redactLine(formatJsonDocument(await runDoctor(session, context))),
    ),
    createDocumentPart('status.json', 'modekeep status', async () => {
      refuseOtherMountNamespace(session)
      return redactLine(formatJsonDocument(await readNodeStatus(session)))
    }),
    { source: configuration.file, read: () => readConfiguration(session, configuration) },
    { source: config.logFile, read: () => readNewestLogLines(host, config.logFile) },
    { source: '/proc/self/mountinfo', read: () => readMountTable(host) },
    { source: config.stateDir, read: () => readRecords(session) },
    { source: `journals in ${config.stateDir}`, read: () => summarizeJournals(session) },
  ]
}

/** Reads the configuration's file, and what modekeep makes of it, also if the file cannot be read. */
function* readConfiguration(
  { host, config }: Session,
  { file, faults }: SupportBundleContext['configuration'],
): Generator<BundleFile | PartProblem> {
  let text: string | null = null
  try {
    text = host.files.readForeign(file) ?? null
  } catch (error) {
    yield { source: file, error }
  }
  const facts = { text, faults: faults.map(({ code, reason }) => ({ code, reason })), effective: config }
  yield { path: 'configuration.json', source: file, text: formatFacts(facts) }
}

const formatFacts = (facts: object) => `${escapeJson(JSON.stringify(redactValue(facts)))}\n`
const redactLine = (line: string) => `${escapeJson(redactDocument(line.trimEnd()))}\n`

async function readVersions(session: Session, { versions, diagnosis }: SupportBundleContext): Promise<object> {
  const plugin = findRunningPlugin(session)
  const runtime = plugin?.runtime || (await readContainerRuntime(session))
  return { ...versions, kernel: diagnosis.release(), containerRuntime: runtime ?? null, nri: plugin?.nri ?? null }
}
