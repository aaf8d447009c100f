import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { deferHandleClose } from '../../kernel/host.ts'
import { createPathLookups } from '../../kernel/mount-table/responsiveness.ts'
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
import { assertWritableOutput, type OutputFile, writeOutputPieces } from './output-file.ts'
import type { OperatorProcess } from './verb.ts'

export interface JournalExportCommand extends OutputFile {
  verb: 'journal'
  action: 'export'
  target: TargetOperand
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
  assertWritableOutput(session, { file, isForced }, caller)
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
  const bytes = await writeOutputPieces(
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
