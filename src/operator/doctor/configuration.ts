import { parseEntryDirectory } from '../../request/rule-source.ts'
import type { Session } from '../../store/session.ts'
import { checkAllowedSources } from './allowed-sources.ts'
import { type CheckResult, fault, ok, warning } from './findings.ts'
import { statPath } from './paths.ts'
import { checkRules, checkSystemGroups } from './rules.ts'

export interface ConfigurationFile {
  file: string
  faults: readonly string[]
}

export async function* checkConfiguration(
  session: Session,
  { file, faults }: ConfigurationFile,
): AsyncGenerator<CheckResult> {
  const { host, config } = session
  for (const text of faults) yield fault(text, `correct ${file}: until then mounts are refused`)
  if (faults.length === 0) {
    yield ok(statPath(host, file) ? `${file} is valid` : `${file} does not exist: the defaults apply`)
  }
  yield* checkRules(config.allow, file)
  yield* checkSystemGroups(config.allow, 'allow', file)
  yield* checkSystemGroups(config.map, 'map', file)
  const entries = config.allow.flatMap(({ sources = ['/*'] }) => sources)
  // Sources of servers are no local directories, so only their mounts are checked.
  const sources = [...new Set(entries.flatMap((entry) => parseEntryDirectory(entry) ?? []))]
  const directories = sources.filter((source) => source !== '/')
  yield* checkAllowedSources(session, directories, file)
  if (directories.length < sources.length) {
    yield warning('pods may mount any directory of the node', `name directories in the rules (allow) of ${file}`)
  }
}
