import { stringify } from 'yaml'
import { escapeJson } from '../../errors/escape.ts'
import { formatJsonDocument } from './output.ts'

/** Formats the document of `formatJsonDocument` as block YAML for `-o yaml`. Strings are quoted, with control characters escaped. */
export function formatYamlDocument<T extends { verb: string }>(document: T): string {
  const text = stringify(JSON.parse(formatJsonDocument(document)), {
    aliasDuplicateObjects: false,
    defaultKeyType: 'PLAIN',
    defaultStringType: 'QUOTE_DOUBLE',
    doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
    lineWidth: 0,
  })
  // JSON's escapes are YAML's too, within double quotes.
  return text.split('\n').map(escapeJson).join('\n')
}
