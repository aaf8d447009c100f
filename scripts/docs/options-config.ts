import type * as z from 'zod/mini'
import { CONFIG_KEY_SCHEMAS } from '../../src/config/config.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { ALLOW_RULE_KEY_SCHEMAS, MAP_RULE_KEY_SCHEMAS } from '../../src/config/rule-schema.ts'
import { CONFIG_TEXTS, MAP_RULE_TEXTS, RULE_TEXTS } from './request-descriptions.ts'
import { valuesOf } from './schema-values.ts'
import { code, table } from './table.ts'

type Key = keyof typeof CONFIG_KEY_SCHEMAS

export function configuration(): string {
  const rows = (Object.keys(CONFIG_TEXTS) as Key[]).map((key) => {
    const { text, values, example } = CONFIG_TEXTS[key]
    const type = valuesOf(CONFIG_KEY_SCHEMAS[key]())
    const allowed = values === undefined ? type : `${type}: ${values}`
    return [code(key), allowed, json(DEFAULT_CONFIG[key]), text, code(`"${key}": ${JSON.stringify(example)}`)]
  })
  return table(['key', 'allowed', 'default', 'meaning', 'example'], rows)
}

export const rules = () => rulesTable(RULE_TEXTS, ALLOW_RULE_KEY_SCHEMAS)

export const mapRules = () => rulesTable(MAP_RULE_TEXTS, MAP_RULE_KEY_SCHEMAS)

function rulesTable<Key extends string>(
  texts: Readonly<Record<Key, (typeof RULE_TEXTS)['sources']>>,
  keys: Readonly<Record<Key, () => z.core.$ZodType>>,
): string {
  const rows = (Object.keys(texts) as Key[]).map((key) => {
    const { text, values, leftOut, example } = texts[key]
    const type = valuesOf(keys[key]())
    const allowed = [type, values].filter(Boolean).join(': ')
    return [code(key), allowed, leftOut, text, code(`"${key}": ${JSON.stringify(example)}`)]
  })
  return table(['key', 'allowed', 'left out', 'meaning', 'example'], rows)
}

const json = (value: unknown) => code(JSON.stringify(value))
