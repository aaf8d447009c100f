import { show } from '../../refusal/refusal.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { isAllowedSource } from './source-path.ts'

/** Faults of a source that only its program understands: `bucket`, `remote:bucket/directory`. */
export function textFaults(source: string): string[] {
  if (source === '') return ['option "source" is missing: write what the program is to show']
  // A leading "-" would be an option; "..", as the program may understand it, would lead out of what is allowed.
  if (/^[A-Za-z0-9_]\P{Cc}*$/u.test(source) && !/(^|[/:])\.\.?(\/|$)/.test(source)) return []
  return [
    `option "source" is ${show(source)}: begin it with a letter or a digit, and write no "..", "." or control character`,
  ]
}

/** Faults of a FUSE program's source, a path or a text, as the node allows it. */
export function allowedFaults(source: string, config: NodeConfig): string[] {
  if (isAllowedSource(source, config) || config.allowedSources.some((entry) => holdsText(entry, source))) return []
  return [
    `option "source" is ${show(source)}: this node allows sources below ${config.allowedSources.join(', ') || 'no directory'}; ` +
      "its administrator can add a prefix to allowedSources in the node's modekeep configuration",
  ]
}

/** A bare name (`bucket`, `remote`, `user@host`) holds all that follows it after ":"; `remote:` all of the remote. */
function holdsText(entry: string, source: string): boolean {
  if (entry.startsWith('/')) return false
  if (entry.endsWith(':')) return source.startsWith(entry)
  return !/[/:]/.test(entry) && source.startsWith(`${entry}:`)
}
