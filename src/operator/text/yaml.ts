import { stringify } from 'yaml'
import { jsonText } from '../../refusal/printable.ts'
import { formatJsonDocument } from './output.ts'

/** What `-o yaml` prints: the document of jsonDocument, in YAML of blocks. Each text is in double quotes, safe to look at. */
export function formatYamlDocument<T extends { verb: string }>(document: T): string {
  const text = stringify(JSON.parse(formatJsonDocument(document)), {
    aliasDuplicateObjects: false,
    defaultKeyType: 'PLAIN',
    defaultStringType: 'QUOTE_DOUBLE',
    doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
    lineWidth: 0,
  })
  // JSON's escapes are YAML's too, within double quotes.
  return text.split('\n').map(jsonText).join('\n')
}
