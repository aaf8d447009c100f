import type { Session } from '../../store/session.ts'
import type { Caller } from './caller.ts'
import type { JournalDocument } from './journal-document.ts'
import { type ExportCommand, exportJournal } from './journal-export.ts'
import { type ImportCommand, importJournal } from './journal-import.ts'

export type JournalCommand = ExportCommand | ImportCommand

/** Exports a volume's record and journal to a file, or imports them from one. */
export function runJournal(session: Session, command: JournalCommand, caller: Caller): Promise<JournalDocument> {
  return command.action === 'export' ? exportJournal(session, command, caller) : importJournal(session, command)
}
