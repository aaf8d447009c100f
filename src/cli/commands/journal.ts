import { quoteValue } from '../../errors/refusal.ts'
import type { Session } from '../../state/session.ts'
import { isTextVolumeId } from '../../state/volume-id.ts'
import { alignColumns, type OutputLine, quoteForShell } from '../output/output.ts'
import { exportJournal, type JournalDocument, type JournalExportCommand } from './journal-export.ts'
import { importJournal, type JournalImportCommand } from './journal-import.ts'
import { readDirectoryOperand, readFileOperand, readPathOption, readTargetOperand } from './operands.ts'
import type { OptionName } from './options.ts'
import { STDOUT_FILE_NAME } from './output-file.ts'
import type { OperatorProcess, SessionVerb, VerbArguments } from './verb.ts'

export const journalVerb: SessionVerb<JournalCommand, JournalDocument> = {
  operands: 'export|import VOLUME|DIR|FILE',
  summary: 'move what is on record of a volume to another node, or a backup',
  text: [
    'export VOLUME|DIR writes what walks have recorded of a volume, so that another node can put it back: to stdout, or ' +
      'to a file with mode 0600. VOLUME is a name that status shows, or an unambiguous beginning of one. A walk may be under way. Nothing is changed here.',
    'import FILE makes that the record of the volume on this node. The volume has to be here, and is told by its ' +
      'identity, not by its path. It is refused where other changes of the volume are on record here. Before anything ' +
      'is written the whole file is checked; a file that is damaged or cut off is refused. It decides what restore ' +
      'gives back: a file that others than root can write is imported with --force only.',
  ],
  options: {
    output: 'export to this file; "-" (default): stdout',
    force: 'export: replace the file that --output names; import: a file that others than root can write',
    at: 'import: the directory where the volume is, if it is not where it was on the other node',
    'dry-run': 'import: check all, and say what would be done; change nothing',
  },
  examples: [
    'modekeep journal export /srv/volumes/data --output /root/data.journal',
    'modekeep journal import /root/data.journal --at /mnt/data',
  ],
  read(args) {
    const { words, given, refuse } = args
    const [action, ...rest] = words
    const operands = { ...args, words: rest }
    if (action === 'export') return readExportArguments(operands)
    const isImport = action === 'import'
    if (!isImport) {
      const got = action === undefined ? 'none' : quoteValue(action)
      refuse(`journal takes export or import, got ${got}`, `write "journal export VOLUME" or "journal import FILE"`)
    }
    if (isImport) refuseOptionsOfAction(operands, 'export', ['output'])
    const at = given.get('at')
    return {
      verb: 'journal',
      action: 'import',
      file: isImport ? readFileOperand('journal import', operands) : '',
      at: at ? readDirectoryOperand('--at', { ...args, words: [at] }) : undefined,
      ...(given.has('force') && { isForced: true }),
      isDry: given.has('dry-run'),
    }
  },
  run: runJournal,
  writesStdout: (command) => command.action === 'export' && command.file === STDOUT_FILE_NAME,
  lines(document) {
    const { action, file, volume, source, isDry, outcome, refusal, recorded, bytes } = document
    // The exported journal is on stdout, so stderr gets only the remarks.
    if (file === STDOUT_FILE_NAME) return formatJournalRemarks(document)
    const tail = isDry ? '. Nothing was changed.' : ''
    const lines: OutputLine[] = [{ text: `${file}: ${outcome}, ${bytes} bytes${tail}`, style: 'strong' }]
    const rows = [['volume', volume], ['source', source || '-'], ...formatVolumeRecordRows(recorded)]
    lines.push(...alignColumns(rows).map((row) => `  ${row}`))
    if (refusal !== null) lines.push({ text: `import would be refused now: ${refusal}`, style: 'notice' })
    lines.push(...formatJournalRemarks(document))
    // A server's volume is restored by name, as its source is no directory.
    const place = isTextVolumeId(volume) ? volume : quoteForShell(source)
    if (action === 'import' && !isDry) lines.push(`"modekeep restore ${place}" puts it back`)
    return lines
  },
  interrupted(command) {
    if (command.action === 'export') {
      return command.file === STDOUT_FILE_NAME
        ? 'interrupted: what was written is cut off, and cannot be imported'
        : 'interrupted: nothing was exported'
    }
    if (command.isDry) return undefined
    return `interrupted: nothing was imported, "modekeep journal import ${quoteForShell(command.file)}" begins anew`
  },
}

function readExportArguments(args: VerbArguments): JournalCommand {
  const { given, refuse } = args
  refuseOptionsOfAction(args, 'import', ['at', 'dry-run'])
  const isStdout = (given.get('output') ?? STDOUT_FILE_NAME) === STDOUT_FILE_NAME
  if (given.has('force') && isStdout) refuse('--force is for --output FILE', 'give both, or leave it out')
  if (given.has('json') && isStdout) refuse('--json needs stdout for its document', 'export with --output FILE')
  return {
    verb: 'journal',
    action: 'export',
    target: readTargetOperand('journal export', args),
    file: isStdout ? STDOUT_FILE_NAME : (readPathOption('output', args) ?? STDOUT_FILE_NAME),
    isForced: given.has('force'),
  }
}

function refuseOptionsOfAction({ given, refuse }: VerbArguments, action: string, names: readonly OptionName[]): void {
  for (const name of names) {
    if (given.has(name)) refuse(`--${name} is for journal ${action}`, 'leave it out')
  }
}

function formatJournalRemarks({ action, busy, recorded }: JournalDocument): OutputLine[] {
  const sentences = [
    busy && 'a walk or restore is under way: what it did later is not in the file',
    action === 'export' && recorded === null && 'there is no record that can be read: only the journal is in the file',
  ]
  return sentences.flatMap((text) => (text ? [{ text, style: 'notice' as const }] : []))
}

function formatVolumeRecordRows(recorded: JournalDocument['recorded']): string[][] {
  if (recorded === null) return [['group', '-']]
  const { group, groupAccess, complete, left, restorePending } = recorded
  const state = complete ? 'walked' : left === null ? 'interrupted' : left === 0 ? 'restored' : 'partly restored'
  return [
    ['group', `${group}, groupAccess ${groupAccess}`],
    ['state', `${state}${restorePending ? ', restore pending' : ''}`],
  ]
}

export type JournalCommand = JournalExportCommand | JournalImportCommand

/** Exports a volume's record and journal to a file, or imports them from one. */
export function runJournal(
  session: Session,
  command: JournalCommand,
  caller: OperatorProcess,
): Promise<JournalDocument> {
  return command.action === 'export' ? exportJournal(session, command, caller) : importJournal(session, command)
}
