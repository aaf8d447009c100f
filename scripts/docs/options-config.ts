import { KEYS } from '../../src/request/config.ts'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import { RULE_KEYS } from '../../src/request/rule-schema.ts'
import { CONFIG_TEXTS, RULE_TEXTS } from './request-descriptions.ts'
import { valuesOf } from './schema-values.ts'
import { code, table } from './table.ts'

type Key = keyof typeof KEYS

export function configuration(): string {
  const rows = (Object.keys(CONFIG_TEXTS) as Key[]).map((key) => {
    const { text, values, example } = CONFIG_TEXTS[key]
    const type = valuesOf(KEYS[key]())
    const allowed = values === undefined ? type : `${type}: ${values}`
    return [code(key), allowed, json(DEFAULT_CONFIG[key]), text, code(`"${key}": ${JSON.stringify(example)}`)]
  })
  return table(['key', 'allowed', 'default', 'meaning', 'example'], rows)
}

export function rules(): string {
  const rows = Object.entries(RULE_TEXTS).map(([key, { text, values, leftOut, example }]) => {
    const type = valuesOf(RULE_KEYS[key as keyof typeof RULE_TEXTS]())
    const allowed = values === undefined ? type : `${type}: ${values}`
    return [code(key), allowed, leftOut, text, code(`"${key}": ${JSON.stringify(example)}`)]
  })
  return table(['key', 'allowed', 'left out', 'meaning', 'example'], rows)
}

const json = (value: unknown) => code(JSON.stringify(value))
