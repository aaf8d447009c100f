import type { MigrateCommand } from '../src/cli/commands/migrate.ts'
import { formatJsonDocument } from '../src/cli/output/output.ts'
import { escapeUnprintable } from '../src/errors/escape.ts'
import { formatError, quoted, Refusal } from '../src/errors/refusal.ts'
import { nodeFs, readHead } from '../src/host/read-file.ts'
import { errorCode } from '../src/host/system-error.ts'
import { MAX_MANIFEST_BYTES } from '../src/migrate/manifest.ts'
import { type MigrationRemark, type MigrationResult, migrate } from '../src/migrate/migrate.ts'
import { writeAll, writeBytes } from './streams.ts'

const OK = 0
const FAILED = 1
const STDERR = 2

/** Prints manifests with other drivers' volumes rewritten to modekeep's, and remarks on stderr. @returns the exit status */
export async function migrateFile({ file }: MigrateCommand, isJson: boolean): Promise<number> {
  const name = file === '-' ? 'stdin' : file
  try {
    const migrated = migrate(await readManifest(file), name)
    await writeBytes(Buffer.from(isJson ? formatJsonDocument({ verb: 'migrate', file, ...migrated }) : migrated.text))
    if (!isJson) writeAll(formatMigrationRemarks(migrated, name), STDERR)
    return migrated.left.length === 0 ? OK : FAILED
  } catch (error) {
    // This bundle has a Refusal class of its own, which its caller would not recognise.
    const message = error instanceof Refusal ? error.message : `failed: ${formatError(error)}`
    if (isJson) writeAll(formatJsonDocument({ verb: 'error', error: message }))
    else writeAll(`modekeep: ${escapeUnprintable(message)}\n`, STDERR)
    return FAILED
  }
}

async function readManifest(file: string): Promise<string> {
  const bytes = file === '-' ? await readStream(process.stdin, file) : readRegularFile(file)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw Refusal.of('command', `file ${quoted(file)} is not UTF-8`, 'write it so')
  }
}

function readRegularFile(file: string): Buffer {
  try {
    return assertManifestSize(readHead(nodeFs, file, MAX_MANIFEST_BYTES + 1), file)
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    if (code === 'EINVAL') {
      throw Refusal.of('file-access', `file ${quoted(file)} is not a regular file`, `name one, or "-" for stdin`)
    }
    throw Refusal.of('file-access', `file ${quoted(file)} cannot be read (${code})`, 'name another')
  }
}

function assertManifestSize(bytes: Buffer, file: string): Buffer {
  if (bytes.length <= MAX_MANIFEST_BYTES) return bytes
  throw Refusal.of('command', `file ${quoted(file)} has more than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`, 'split it')
}

/** @throws {Refusal} if the stream is longer than a manifest may be */
async function readStream(stream: AsyncIterable<Buffer>, file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of stream) {
    sizeBytes += chunk.length
    chunks.push(chunk)
    if (sizeBytes > MAX_MANIFEST_BYTES) break
  }
  return assertManifestSize(Buffer.concat(chunks), file)
}

function formatMigrationRemarks({ volumes, secrets, left, notes, allow }: MigrationResult, name: string): string {
  const line = (kind: string) => (remark: MigrationRemark) =>
    `${kind}: ${name}, line ${remark.line}${remark.what && `, ${remark.what}`}: ${remark.text}`
  const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
  const rules = allow.map((rule) => `  ${JSON.stringify(rule)}`)
  const lines = [
    ...left.map(line('left')),
    ...notes.map(line('note')),
    ...(rules.length > 0 ? ['note: "allow" in the configuration of the nodes needs:', ...rules] : []),
    `modekeep: ${counted(volumes, 'volume')} and ${counted(secrets, 'Secret')} rewritten, ${counted(left.length, 'thing')} left to do`,
  ]
  return lines.map((text) => `${escapeUnprintable(text)}\n`).join('')
}
