import * as fs from 'node:fs'
import { writeMetrics, writeTextfile } from '../src/metrics/expose.ts'
import type { Session } from '../src/store/session.ts'
import { print } from './streams.ts'
import { VERSION } from './version.ts'

/** Writes the metrics of `status --prometheus` to stdout, or to a file that a collector reads. */
export function exposeMetrics(session: Session, output: string | undefined): Promise<void> {
  return writeMetrics(fs, session, VERSION, (text) => {
    if (output === undefined) print(text)
    else writeTextfile(session.host, output, text)
  })
}

/** Returns the metrics of `status --prometheus`, to be served over HTTP. */
export async function formatMetrics(session: Session): Promise<string> {
  let page = ''
  await writeMetrics(fs, session, VERSION, (text) => {
    page = text
  })
  return page
}
