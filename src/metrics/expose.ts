import type * as NodeFs from 'node:fs'
import { refuseOtherNamespace } from '../heal/namespace.ts'
import type { Host } from '../host/host.ts'
import { status } from '../operator/actions/status.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { Session } from '../store/session.ts'
import { count } from './counters.ts'
import { addGauges } from './gauges.ts'
import { textOf, zeros } from './samples.ts'

/**
 * Looks at the node as `status` does, and counts what the log says since the last time.
 * @param write gets the whole text; nobody else counts until it returns, so a later text is never older
 */
export async function expose(
  fs: typeof NodeFs,
  session: Session,
  version: string,
  write: (text: string) => void,
): Promise<void> {
  refuseOtherNamespace(session)
  const gauges = zeros('gauges')
  addGauges(gauges, session, await status(session), version)
  count(fs, session, (counters) => write(textOf(new Map([...gauges, ...counters]))))
}

/** Everybody may read it: the collector is not root. */
const READABLE = 0o644

/**
 * Exchanges a file for one with this text. The temporary name ends in no `.prom`, by which a collector goes.
 * @throws {Refusal} naming the file, and what the system said
 */
export function writeTextfile({ files }: Host, path: string, text: string): void {
  try {
    files.replace(path, text, READABLE)
  } catch (error) {
    const { cause = error } = error as Error
    const said = (cause as Error).message
    throw new Refusal(
      `--output ${quoted(path)} cannot be written (${said}): name a file in a directory that is there`,
      {
        cause: error,
      },
    )
  }
}
