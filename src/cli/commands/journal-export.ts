import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { deferHandleClose, FILE_TYPE_MASK, getErrno, REGULAR_FILE_TYPE } from '../../kernel/host.ts'
import { createPathLookups } from '../../kernel/mount-table/responsiveness.ts'
import { FileError } from '../../kernel/system-error.ts'
import type { JournalSnapshot } from '../../ownership/journal/copy.ts'
import { serializeExportedJournal } from '../../state/exported-journal.ts'
import { listVolumeIdentitiesAt } from '../../state/find-volume.ts'
import { readWhileVolumeIdle } from '../../state/lock-holders.ts'
import type { Session } from '../../state/session.ts'
import { hasVolumeJournal, openJournalSnapshot } from '../../state/volume-journal.ts'
import { type VolumeRecord, volumeRecords } from '../../state/volume-record.ts'
import { DIRECTORY_REQUIREMENT, openNodeSourceWithLookups } from '../../volume/kind/source-path.ts'
import { extractLastWalk, type LastWalk } from '../node-state/recorded-walk.ts'
import { resolveTargetOperand, type TargetOperand } from './operands.ts'
import type { OperatorProcess } from './verb.ts'

/** @property file an absolute path, or '-' for stdout. With `isForced` an existing file is replaced. */
export interface JournalExportCommand {
  verb: 'journal'
  action: 'export'
  target: TargetOperand
  file: string
  isForced: boolean
}

/** A volume's record and journal, read at one moment. */
interface VolumeJournalSnapshot {
  record: VolumeRecord | undefined
  journal: JournalSnapshot
  busy: boolean
}

/** Writes a volume's record and journal to stdout, or to a file that appears once complete. A walk may be running. */
export async function exportJournal(
  session: Session,
  { target, file, isForced }: JournalExportCommand,
  caller: OperatorProcess,
): Promise<JournalDocument> {
  session.note({ action: 'export', file })
  assertExportOutput(session, file, isForced, caller)
  const resolved = await resolveTargetOperand(session, target)
  const volume = 'volume' in resolved ? resolved.volume : await findRecordedVolume(session, resolved.directory)
  const { record = null, journal, busy } = openVolumeJournalSnapshot(session, volume)
  using _ = journal
  const header = {
    modekeep: caller.version,
    volume,
    record,
    disk: journal.disk ?? null,
    unsettled: journal.unsettled.map(Number),
    acls: journal.acls,
    batches: journal.batches,
    bytes: journal.bytes,
  }
  const bytes = await writeExportPieces(
    session,
    serializeExportedJournal(header, journal.rows()),
    { file, isForced },
    caller,
  )
  session.note({ volume, bytes })
  return {
    verb: 'journal',
    action: 'export',
    file,
    volume,
    source: record?.source ?? '',
    isDry: false,
    outcome: 'exported',
    refusal: null,
    recorded: record && extractLastWalk(record),
    busy,
    bytes,
  }
}

function assertExportOutput({ host }: Session, file: string, isForced: boolean, { isTerminal }: OperatorProcess): void {
  if (file === '-') {
    if (isTerminal)
      throw Refusal.of('command', 'stdout is a terminal', 'name a file, as in --output FILE, or write to a pipe')
    return
  }
  const existing = host.files.stat(file)
  if (existing === undefined) return
  if ((existing.mode & FILE_TYPE_MASK) !== REGULAR_FILE_TYPE)
    throw Refusal.of('command', `${quoteValue(file)} is no regular file`, 'name another, or write to stdout')
  if (!isForced)
    throw Refusal.of('command', `${quoteValue(file)} is there already`, 'name another file, or replace it with --force')
}

/** Returns the volume name that has a record, among the names that a directory may have as a volume. */
async function findRecordedVolume(session: Session, directory: string): Promise<string> {
  const wanted = { ...DIRECTORY_REQUIREMENT, what: 'directory' }
  const { handle } = await openNodeSourceWithLookups(createPathLookups(session), session.host, directory, wanted)
  using _ = deferHandleClose(session.host.inodes, handle)
  const volumes = listVolumeIdentitiesAt(session, directory, handle)
  const volume = volumes.find((name) => volumeRecords.has(session, name) || hasVolumeJournal(session, name))
  if (volume !== undefined) return volume
  throw Refusal.of(
    'command',
    `nothing is recorded of ${quoteValue(directory)} (volume ${volumes[0]})`,
    `"modekeep status" names the volumes that are`,
  )
}

function openVolumeJournalSnapshot(session: Session, volume: string): VolumeJournalSnapshot {
  const readBoth = () => {
    const record = volumeRecords.readUnlessDamaged(session, volume)
    if (record === undefined && volumeRecords.has(session, volume)) {
      session.warn(`the record of volume ${volume} is damaged: the journal is exported without it`, 'record-damaged')
    }
    return { record, journal: openJournalSnapshot(session, volume, record !== undefined) }
  }
  const idle = readWhileVolumeIdle(session, volume, readBoth)
  const busy = idle === 'busy'
  const { record, journal } = busy ? readBoth() : idle
  if (journal === undefined) {
    throw Refusal.of(
      'volume-unknown',
      `nothing is recorded of volume ${volume}`,
      `"modekeep status" names those that are`,
    )
  }
  // A walk may have begun or ended between the two reads, so the record is exported as incomplete and walked again.
  return { record: record && busy ? { ...record, complete: false } : record, journal, busy }
}

function throwStdoutError(error: unknown): never {
  const code = getErrno(error)
  throw code === undefined ? error : new FileError('write to', 'stdout', code, error as Error)
}

/** @returns the number of bytes written */
async function writeExportPieces(
  { host }: Session,
  pieces: Iterable<Uint8Array>,
  { file, isForced }: Pick<JournalExportCommand, 'file' | 'isForced'>,
  { write, interrupted }: OperatorProcess,
): Promise<number> {
  let bytes = 0
  if (file === '-') {
    for (const piece of pieces) {
      await write(piece).catch(throwStdoutError)
      bytes += piece.length
    }
    return bytes
  }
  using made = host.files.create(file, isForced)
  using listening = new DisposableStack()
  const remove = () => made[Symbol.dispose]()
  interrupted.addEventListener('abort', remove)
  listening.defer(() => interrupted.removeEventListener('abort', remove))
  const pace = createPeriodicYield()
  for (const piece of pieces) {
    made.write(piece)
    bytes += piece.length
    await pace(piece.length)
  }
  made.finish()
  return bytes
}

export interface JournalDocument {
  verb: 'journal'
  action: 'export' | 'import'
  /** Path of the exported journal; '-' is stdout. */
  file: string
  volume: string
  /** For an export, the directory where the volume was walked; for an import, its directory on this node. */
  source: string
  isDry: boolean
  outcome: 'exported' | 'imported' | 'already here' | 'would import'
  /** With isDry: the refusal that the import would get now. */
  refusal: string | null
  /** The recorded state of the last walk; null: no readable record. */
  recorded: LastWalk | null
  /** A walk or a restore was running during the export. Its later changes are not in the file. */
  busy: boolean
  /** Size of the file. */
  bytes: number
}

const YIELD_INTERVAL_BYTES = 4 << 20

/** Returns a function that yields to other events, such as Ctrl-C, every few megabytes. */
export function createPeriodicYield(): (bytes: number) => Promise<void> {
  let since = 0
  return async (bytes) => {
    since += bytes
    if (since < YIELD_INTERVAL_BYTES) return
    since = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}
