import type * as NodeFs from 'node:fs'
import { refuseOtherNamespace } from '../heal/namespace.ts'
import { status } from '../operator/actions/status.ts'
import type { Session } from '../store/session.ts'
import { count } from './counters.ts'
import { addGauges } from './gauges.ts'
import { zeros } from './samples.ts'
import { textOf } from './text.ts'

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
