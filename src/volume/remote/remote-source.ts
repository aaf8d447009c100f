import { quoted } from '../../refusal/refusal.ts'
import { allowedFaults } from '../../request/allowed-sources.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import type { KindRequest } from '../../request/request.ts'
import { sourceText } from '../../request/source.ts'

const EXAMPLES = { export: 'host:/export', share: '//server/share' } as const

/** Faults of a source on a server. Only entries of allowedSources in the same form allow it, by whole names. */
export function remoteFaults(
  { source, subPath, fsType }: KindRequest,
  form: 'export' | 'share',
  config: NodeConfig,
): string[] {
  const faults: string[] = []
  if (subPath !== undefined) {
    faults.push(`option "subPath" is ${quoted(subPath)}: of ${fsType} the source names the directory, add it there`)
  }
  if (source.type === form) return [...faults, ...allowedFaults(source, fsType, config)]
  const what = source.type === 'none' ? 'is missing' : `is ${quoted(sourceText(source))}`
  return [...faults, `option "source" ${what}: write it like ${EXAMPLES[form]}, without "..", "." or a comma`]
}
