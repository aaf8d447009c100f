import { PRIVATE_STATE_DIRECTORIES } from '../../config/defaults.ts'
import { escapeJson, escapeUnprintable } from '../../errors/escape.ts'
import type { Host } from '../../kernel/host.ts'
import { listLogFiles } from '../../log/log-file.ts'
import {
  JOURNAL_FILES,
  listVolumesWithRecords,
  locateVolumeRecords,
  type Store,
  TRANSIENT_FILES,
} from '../../state/record-directories.ts'
import type { BundleFile, PartProblem } from './bundle.ts'
import { redactDocument, redactMountinfoLine } from './redact.ts'

const MAX_LOG_BYTES = 2 << 20
const MAX_MOUNTINFO_BYTES = 2 << 20
const MAX_RECORD_BYTES = 1 << 18
const MAX_RECORDS_OF_KIND = 200
const MAX_RECORDS_BYTES = 8 << 20
const MAX_LISTED_DIRECTORIES = 5000
const MAX_LISTED_VOLUMES = 1000

/** Reads the newest lines of the log, at most 2 MiB over all of its files. */
export function* readNewestLogLines({ files }: Host, logFile: string): Generator<BundleFile | PartProblem> {
  const blocks: string[] = []
  let remaining = MAX_LOG_BYTES
  let isCut = false
  for (const path of listLogFiles(logFile)) {
    try {
      if (!files.has(path)) continue
      using file = files.openForeign(path)
      const start = Math.max(0, file.size - remaining)
      const text = Buffer.from(file.read(start, file.size - start)).toString()
      // The first line is cut, unless it begins the file.
      blocks.unshift(start === 0 ? text : text.slice(text.indexOf('\n') + 1))
      isCut ||= start > 0
      remaining -= file.size - start
    } catch (error) {
      yield { source: path, error }
    }
    if (remaining === 0) break
  }
  const lines = blocks.flatMap((text) => text.split('\n')).filter((line) => line !== '')
  const text = lines.map((line) => `${escapeJson(redactDocument(line))}\n`).join('')
  yield { path: 'log.jsonl', source: logFile, text, isCut }
}

/** Reads the mount table of this process, with its secrets redacted. */
export function* readMountTable({ mounts }: Host): Generator<BundleFile> {
  const table = mounts.table()
  const kept = table.slice(0, MAX_MOUNTINFO_BYTES)
  const isCut = kept.length < table.length
  const lines = kept.slice(0, kept.lastIndexOf('\n') + 1).split('\n')
  const text = lines.map((line) => escapeUnprintable(redactMountinfoLine(line))).join('\n')
  yield { path: 'mountinfo', source: '/proc/self/mountinfo', text, isCut }
}

/** Directories with records. Staging directories may have secrets, and mounts that hang. Locks are no records. */
const RECORD_KINDS = (['mounts', 'ownership', 'reservations', 'containers', 'rootBits'] as const).map(
  (kind) => PRIVATE_STATE_DIRECTORIES[kind],
)

/** Reads modekeep's records, a limited number of each kind. Journals are not read, because they name users' files. */
export function* readRecords(store: Store): Generator<BundleFile | PartProblem> {
  const { files } = store.host
  const { stateDir } = store.config
  let remaining = MAX_RECORDS_BYTES
  const ownFiles = files.list(stateDir).filter((name) => name.endsWith('.json'))
  const kinds = [
    { kind: 'node', top: stateDir, paths: ownFiles.map((name) => `${stateDir}/${name}`), isCut: false },
    ...RECORD_KINDS.map((kind) => ({
      kind,
      top: `${stateDir}/${kind}`,
      ...listRecordFiles(store, `${stateDir}/${kind}`),
    })),
  ]
  for (const { kind, top, paths, isCut } of kinds) {
    let leftOut = Math.max(0, paths.length - MAX_RECORDS_OF_KIND)
    let count = 0
    for (const source of paths.slice(0, MAX_RECORDS_OF_KIND)) {
      if (remaining < MAX_RECORD_BYTES) {
        leftOut++
        continue
      }
      try {
        const content = files.readForeign(source, MAX_RECORD_BYTES)
        // Calls remove records meanwhile.
        if (content === undefined) continue
        remaining -= Buffer.byteLength(content)
        count++
        yield {
          path: `records/${kind}/${count}.json`,
          source,
          text: `${escapeJson(redactDocument(content.trimEnd()))}\n`,
        }
      } catch (error) {
        yield { source, error }
      }
    }
    if (isCut || leftOut > 0) yield { source: top, leftOut }
  }
}

/** Lists the files of records below a directory. Any other file counts as an empty directory. */
function listRecordFiles({ host: { files } }: Store, top: string): { paths: string[]; isCut: boolean } {
  const paths: string[] = []
  const directories = [top]
  let listed = 0
  for (let directory = directories.shift(); directory !== undefined; directory = directories.shift()) {
    if (++listed > MAX_LISTED_DIRECTORIES) return { paths, isCut: true }
    for (const name of files.list(directory).sort()) {
      const path = `${directory}/${name}`
      if (name.endsWith('.json')) paths.push(path)
      else if (!TRANSIENT_FILES.has(name) && !JOURNAL_FILES.includes(name)) directories.push(path)
    }
  }
  return { paths, isCut: false }
}

/** Summarizes the journals: volumes, files and sizes. */
export function* summarizeJournals(store: Store): Generator<BundleFile> {
  const { files } = store.host
  const volumes = listVolumesWithRecords(store)
  const journals = volumes.slice(0, MAX_LISTED_VOLUMES).map((volume) => {
    const { path } = locateVolumeRecords(store, volume)
    const names = files.list(path).filter((name) => JOURNAL_FILES.includes(name))
    return { volume, files: names.map((name) => ({ name, bytes: files.size(`${path}/${name}`) })) }
  })
  yield {
    path: 'journals.json',
    source: `${store.config.stateDir}/${PRIVATE_STATE_DIRECTORIES.ownership}`,
    text: `${JSON.stringify(journals)}\n`,
    isCut: journals.length < volumes.length,
  }
}
