import type * as z from 'zod/mini'
import { CONFIG_KEY_SCHEMAS } from '../../src/config/config.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { ALLOW_RULE_KEY_SCHEMAS, MAP_RULE_KEY_SCHEMAS } from '../../src/config/rule-schema.ts'
import { CONFIG_TEXTS, MAP_RULE_TEXTS, RULE_TEXTS } from './request-descriptions.ts'
import { describeSchemaValues } from './schema-values.ts'
import { formatMarkdownCode, formatMarkdownTable } from './table.ts'

type ConfigKey = keyof typeof CONFIG_KEY_SCHEMAS

export function createConfigTable(): string {
  const rows = (Object.keys(CONFIG_TEXTS) as ConfigKey[]).map((key) => {
    const { text, values, example } = CONFIG_TEXTS[key]
    const type = describeSchemaValues(CONFIG_KEY_SCHEMAS[key]())
    const allowed = values === undefined ? type : `${type}: ${values}`
    return [
      formatMarkdownCode(key),
      allowed,
      formatJsonCode(DEFAULT_CONFIG[key]),
      text,
      formatMarkdownCode(`"${key}": ${JSON.stringify(example)}`),
    ]
  })
  return formatMarkdownTable(['key', 'allowed', 'default', 'meaning', 'example'], rows)
}

export const createRulesTable = () => createKeysTable(RULE_TEXTS, ALLOW_RULE_KEY_SCHEMAS)

export const createMapRulesTable = () => createKeysTable(MAP_RULE_TEXTS, MAP_RULE_KEY_SCHEMAS)

function createKeysTable<Key extends string>(
  texts: Readonly<Record<Key, (typeof RULE_TEXTS)['sources']>>,
  keys: Readonly<Record<Key, () => z.core.$ZodType>>,
): string {
  const rows = (Object.keys(texts) as Key[]).map((key) => {
    const { text, values, leftOut, example } = texts[key]
    const type = describeSchemaValues(keys[key]())
    const allowed = [type, values].filter(Boolean).join(': ')
    return [formatMarkdownCode(key), allowed, leftOut, text, formatMarkdownCode(`"${key}": ${JSON.stringify(example)}`)]
  })
  return formatMarkdownTable(['key', 'allowed', 'left out', 'meaning', 'example'], rows)
}

const formatJsonCode = (value: unknown) => formatMarkdownCode(JSON.stringify(value))
