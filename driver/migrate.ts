import type { MigrateCommand } from '../src/cli/commands/migrate.ts'
import { formatJsonDocument } from '../src/cli/output/output.ts'
import { escapeUnprintable } from '../src/errors/escape.ts'
import { renderFaultCodes } from '../src/errors/fault.ts'
import { formatError, Refusal } from '../src/errors/refusal.ts'
import { readManifestText } from '../src/migrate/manifest.ts'
import { formatMigrationRemarks, migrateManifest } from '../src/migrate/migrate.ts'
import { STDERR, writeBytesToStdout, writeWholeText } from './streams.ts'

const EXIT_SUCCESS = 0
const EXIT_FAILURE = 1

/** Prints manifests with other drivers' volumes rewritten to modekeep's, and remarks on stderr. @returns the exit status */
export async function runMigrateCommand({ file }: MigrateCommand, isJson: boolean): Promise<number> {
  const name = file === '-' ? 'stdin' : file
  try {
    const migrated = migrateManifest(await readManifestText(file, process.stdin), name)
    await writeBytesToStdout(
      Buffer.from(isJson ? formatJsonDocument({ verb: 'migrate', file, ...migrated }) : migrated.text),
    )
    if (!isJson) writeWholeText(formatMigrationRemarks(migrated, name), STDERR)
    return migrated.left.length === 0 ? EXIT_SUCCESS : EXIT_FAILURE
  } catch (error) {
    // This bundle has a Refusal class of its own, which its caller would not recognise.
    const message =
      error instanceof Refusal ? `${error.message}${renderFaultCodes(error.faults)}` : `failed: ${formatError(error)}`
    if (isJson) writeWholeText(formatJsonDocument({ verb: 'error', error: message }))
    else writeWholeText(`modekeep: ${escapeUnprintable(message)}\n`, STDERR)
    return EXIT_FAILURE
  }
}
