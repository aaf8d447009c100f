import { parseEntryDirectory } from '../../request/rule-source.ts'
import type { Session } from '../../store/session.ts'
import { allowedSourceFindings } from './allowed-sources.ts'
import { type Found, fault, ok, warning } from './findings.ts'
import { lookAtPath } from './paths.ts'
import { ruleFindings, systemGroupFindings } from './rules.ts'

export interface Configuration {
  file: string
  faults: readonly string[]
}

export async function* configurationFindings(session: Session, { file, faults }: Configuration): AsyncGenerator<Found> {
  const { host, config } = session
  for (const text of faults) yield fault(text, `correct ${file}: until then mounts are refused`)
  if (faults.length === 0) {
    yield ok(lookAtPath(host, file) ? `${file} is valid` : `${file} does not exist: the defaults apply`)
  }
  yield* ruleFindings(config.allow, file)
  yield* systemGroupFindings(config.allow, 'allow', file)
  yield* systemGroupFindings(config.map, 'map', file)
  const entries = config.allow.flatMap(({ sources = ['/*'] }) => sources)
  // Others' are asked by their mount alone.
  const sources = [...new Set(entries.flatMap((entry) => parseEntryDirectory(entry) ?? []))]
  const directories = sources.filter((source) => source !== '/')
  yield* allowedSourceFindings(session, directories, file)
  if (directories.length < sources.length) {
    yield warning('pods may mount any directory of the node', `name directories in the rules (allow) of ${file}`)
  }
}
