import type { Session } from '../../store/session.ts'
import type { Caller } from './caller.ts'
import type { JournalDocument } from './journal-document.ts'
import { type ExportCommand, exportJournal } from './journal-export.ts'
import { type ImportCommand, importJournal } from './journal-import.ts'

export type JournalCommand = ExportCommand | ImportCommand

/** Writes what is on record of a volume to a file, or takes it from one. */
export function runJournal(session: Session, command: JournalCommand, caller: Caller): Promise<JournalDocument> {
  return command.action === 'export' ? exportJournal(session, command, caller) : importJournal(session, command)
}
