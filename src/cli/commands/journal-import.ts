import { normalize } from 'node:path'
import { createFault, type Fault, renderFault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'
import { deferHandleClose, getErrno } from '../../kernel/host.ts'
import {
  createPathLookups,
  createUnresponsiveRefusal,
  type PathLookups,
} from '../../kernel/mount-table/responsiveness.ts'
import { type ExportedJournal, readExportedJournal } from '../../state/exported-journal.ts'
import { listVolumeIdentitiesAt, locateVolume } from '../../state/find-volume.ts'
import { JournalImportStage } from '../../state/import-stage.ts'
import { readWhileVolumeIdle } from '../../state/lock-holders.ts'
import type { Session } from '../../state/session.ts'
import {
  explainDiskDifference,
  formatJournalDisk,
  parseJournalDisk,
  readBackingDisk,
  toRecordedDisk,
} from '../../state/volume-disk.ts'
import { isTextVolumeId } from '../../state/volume-id.ts'
import { openJournalForReading, openJournalSnapshot } from '../../state/volume-journal.ts'
import { type VolumeRecord, volumeRecords } from '../../state/volume-record.ts'
import { DIRECTORY_REQUIREMENT, openNodeSourceWithLookups } from '../../volume/kind/source-path.ts'
import { extractLastWalk } from '../node-state/recorded-walk.ts'
import type { JournalDocument } from './journal-export.ts'
import { createPeriodicYield } from './output-file.ts'

/** @property file an absolute path @property at the volume's directory, absolute, if it is not the recorded one */
export interface JournalImportCommand {
  verb: 'journal'
  action: 'import'
  file: string
  at: string | undefined
  /** Accepts a file that users other than root can write. */
  isForced?: boolean
  isDry: boolean
}

/** Imports the record and journal that another node exported of a volume of this node, atomically. */
export async function importJournal(
  session: Session,
  { file: path, at, isForced, isDry }: JournalImportCommand,
): Promise<JournalDocument> {
  session.note({ action: 'import', file: path })
  using file = session.host.files.openForeign(path)
  if (file.isOthers && !isForced) {
    throw Refusal.of(
      'command',
      `file ${quoteValue(path)} can be written by users other than root, and it decides which owners a restore gives`,
      'chown root and chmod go-w it after a check of where it comes from, or import it with --force',
    )
  }
  const exported = readExportedJournal(file, path)
  const { header } = exported
  const pace = createPeriodicYield()
  for (const { bytes } of exported.rows()) await pace(bytes.length)
  const { volume } = header
  session.note({ volume })
  const source = await resolveImportDirectory(session, exported, at)
  session.note({ source })
  const about = { verb: 'journal', action: 'import', file: path, volume, source, isDry, busy: false } as const
  const document = { ...about, recorded: header.record && extractLastWalk(header.record), bytes: file.size }
  if (header.bytes > session.config.stateQuota) {
    throw Refusal.of(
      'command',
      `the journal of volume ${volume} has ${header.bytes} bytes, and "stateQuota" of the configuration is ${session.config.stateQuota}`,
      'raise that',
    )
  }
  const comparison = compareExportWithRecords(session, exported)
  if (comparison === 'same') return { ...document, outcome: 'already here', refusal: null }
  if (isDry)
    return {
      ...document,
      outcome: 'would import',
      refusal: comparison === 'nothing' ? null : renderFault(createImportFault(comparison, volume)),
    }
  if (comparison === 'other') throw new Refusal(createImportFault(comparison, volume))
  using stage = JournalImportStage.tryOpen(session, volume)
  if (stage === undefined) {
    throw Refusal.of(
      'command',
      `another import of volume ${volume} is under way`,
      'call this again when that has ended',
    )
  }
  // The state directory exists only from here on, and its disk may be the volume's.
  const disk = toRecordedDisk(await identifyVolumeDisk(session, exported, source))
  await stage.write(header.record === null ? undefined : relocateVolumeRecord(header.record, source, disk), {
    rows: exported.rows(),
    unsettled: header.unsettled.map(BigInt),
    disk: disk && formatJournalDisk(disk),
  })
  const outcome = await stage.publish()
  if (outcome !== 'published') throw new Refusal(createImportFault(outcome === 'busy' ? 'busy' : 'other', volume))
  return { ...document, outcome: 'imported', refusal: null }
}

/**
 * Returns the volume's directory on this node.
 * @throws {Refusal} if the volume is not found, because the records would name inodes that do not exist here. Also if it
 * is on another disk and no directory was named, because a pod can create a file system with the same identity
 */
async function resolveImportDirectory(
  session: Session,
  exported: ExportedJournal,
  at: string | undefined,
): Promise<string> {
  const source = at ?? (await findExportedVolumeDirectory(session, exported))
  const disk = await identifyVolumeDisk(session, exported, source)
  const other =
    at === undefined ? explainDiskDifference(exported.header.volume, parseExportedDisk(exported), disk) : undefined
  if (other === undefined) return source
  throw Refusal.of('command', other, `if ${quoteValue(source)} is the one that is meant, name it with --at`)
}

/**
 * Identifies the volume's disk on this node. The disk that another node recorded may have another name here.
 * @throws {Refusal} if the directory is another volume, or does not respond
 */
async function identifyVolumeDisk(
  session: Session,
  { header }: ExportedJournal,
  directory: string,
): Promise<ReturnType<typeof readBackingDisk>> {
  const { host } = session
  const wanted = { ...DIRECTORY_REQUIREMENT, what: 'directory' }
  const { handle } = await openNodeSourceWithLookups(createPathLookups(session), host, directory, wanted)
  using _ = deferHandleClose(host.inodes, handle)
  const volumes = listVolumeIdentitiesAt(session, directory, handle)
  if (volumes.includes(header.volume)) return readBackingDisk(session, handle)
  throw Refusal.of(
    'command',
    `directory ${quoteValue(directory)} is volume ${volumes.join(' or ')}, and the file is of volume ${header.volume}`,
    'name the directory where that is (a file system that was made anew, or copied file by file, is another one)',
  )
}

function parseExportedDisk({ header: { record, disk } }: ExportedJournal): VolumeRecord['disk'] {
  if (record !== null) return record.disk
  return disk === null ? undefined : parseJournalDisk(disk)
}

async function findExportedVolumeDirectory(session: Session, { header }: ExportedJournal): Promise<string> {
  const lookups = createPathLookups(session)
  const { volume, record } = header
  const was = record !== null && isPlainAbsolutePath(record.source) ? record.source : undefined
  const found = await locateVolume(session, volume, lookups, true, was)
  if (found?.isSilent) throw createUnresponsiveRefusal(found.path)
  if (found !== undefined) return found.path
  throw Refusal.of(
    'command',
    `the file is of volume ${volume}, which is not found on this node${await describeFormerVolumePath(session, record, lookups)}`,
    'mount it, and name its directory with --at DIR',
  )
}

/** Accepts only a normalized absolute path. The text comes from a file, and may be the name of a share or lead elsewhere. */
function isPlainAbsolutePath(source: string): boolean {
  return source.startsWith('/') && !source.includes('\0') && normalize(source) === source
}

/** Describes what is now at the path that the volume had on the other node. */
async function describeFormerVolumePath(
  session: Session,
  record: VolumeRecord | null,
  lookups: PathLookups,
): Promise<string> {
  if (record === null) return ''
  const { source, volume } = record
  if (isTextVolumeId(volume) || !isPlainAbsolutePath(source)) return ` (it was ${quoteValue(source)})`
  if (await lookups.isUnresponsive(source)) return ` (it was ${quoteValue(source)}, which does not respond here)`
  try {
    const { handle } = await openNodeSourceWithLookups(lookups, session.host, source)
    using _ = deferHandleClose(session.host.inodes, handle)
    return ` (it was ${quoteValue(source)}, which is volume ${listVolumeIdentitiesAt(session, source, handle)[0]} here)`
  } catch (error) {
    if (error instanceof Refusal || getErrno(error) !== undefined)
      return ` (it was ${quoteValue(source)}, which is no directory here)`
    throw error
  }
}

/** Sets the record's directory. A text identity needs none. The recorded request is dropped, as its links are the other node's. */
function relocateVolumeRecord(record: VolumeRecord, directory: string, disk: VolumeRecord['disk']): VolumeRecord {
  const moved = { ...record, disk }
  if (isTextVolumeId(record.volume) || record.source === directory) return moved
  const { asked: _, ...rest } = moved
  return { ...rest, source: directory }
}

/** Compares the exported journal with this node's record of the volume. */
function compareExportWithRecords(session: Session, exported: ExportedJournal): 'nothing' | 'same' | 'other' | 'busy' {
  const { volume } = exported.header
  return readWhileVolumeIdle(session, volume, () => {
    if (!volumeRecords.has(session, volume)) {
      using journal = openJournalForReading(session, volume, false)
      if (journal?.isEmpty() ?? true) return 'nothing'
    }
    return isExportSameAsRecorded(session, exported) ? 'same' : 'other'
  })
}

function isExportSameAsRecorded(session: Session, { header, rows }: ExportedJournal): boolean {
  const { record } = volumeRecords.find(session, header.volume)
  using journal = openJournalSnapshot(session, header.volume, false)
  const [one, other] = [record, header.record].map((saved) => JSON.stringify(saved ? extractLastWalk(saved) : null))
  if (journal === undefined || one !== other) return false
  if (journal.acls !== header.acls || journal.batches !== header.batches) return false
  if (journal.unsettled.join() !== header.unsettled.join()) return false
  const exportedRows = rows()
  for (const { number, bytes } of journal.rows()) {
    const { value } = exportedRows.next()
    if (value?.number !== number || Buffer.compare(value.bytes, bytes) !== 0) return false
  }
  return true
}

function createImportFault(why: 'other' | 'busy', volume: string): Fault {
  return why === 'busy'
    ? createFault(
        'command',
        `a walk or a restore of volume ${volume} is under way here`,
        'call this again when that has ended',
      )
    : createFault(
        'command',
        `other changes of volume ${volume} are on record here`,
        `put them back with "modekeep restore ${volume}", then import`,
      )
}
