import type * as z from 'zod/mini'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { type RecordedRequest, toRecordedRequest } from '../../src/config/mount-request.ts'
import { optionsSchema, parseFlexVolumeRequest } from '../../src/config/request.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { type AuthorKey, type AuthorOption, KUBELET_TEXTS, OPTION_TEXTS } from './request-descriptions.ts'
import { valuesOf } from './schema-values.ts'
import { code, table } from './table.ts'

const HEAD = ['key', 'allowed', 'default', 'meaning', 'example']

/** What a request is made of where a pod leaves a key out: asked of the code that reads requests. */
const LEFT_OUT = toRecordedRequest(
  parseFlexVolumeRequest('/unused', '{"kubernetes.io/fsType":"tmpfs"}', DEFAULT_CONFIG, volumeKindLookup),
)

function defaultOf(key: AuthorKey, { member, leftOut }: AuthorOption): string {
  const value = LEFT_OUT[member ?? (key as keyof RecordedRequest)]
  const isNothing = value === undefined || typeof value === 'object'
  if (isNothing !== (leftOut !== undefined)) {
    throw new Error(`what ${key} is where it is left out: see scripts/docs/request-descriptions.ts`)
  }
  return leftOut ?? code(String(value))
}

function rowFor(key: AuthorKey, option: AuthorOption): string[] {
  const { text, example, values, appliesTo } = option
  const schema: z.core.$ZodType = optionsSchema.shape[key]
  const meaning = appliesTo === undefined ? text : `${text} For ${appliesTo}.`
  return [
    code(key),
    values ?? valuesOf(schema),
    defaultOf(key, option),
    meaning,
    code(`${key}: ${quoted(String(example))}`),
  ]
}

/** YAML takes these for something else than text. */
const quoted = (text: string) => (/^[0-9]+$|^(true|false)$/.test(text) ? `"${text}"` : text)

export function authorOptions(): string {
  return table(
    HEAD,
    (Object.keys(OPTION_TEXTS) as AuthorKey[]).map((key) => rowFor(key, OPTION_TEXTS[key])),
  )
}

export function kubeletKeys(): string {
  const rows = Object.entries(KUBELET_TEXTS).map(([key, { text, example, values }]) => {
    const schema: z.core.$ZodType = optionsSchema.shape[key as keyof typeof optionsSchema.shape]
    return [code(key), values ?? valuesOf(schema), text, code(String(example))]
  })
  return table(['key', 'values', 'meaning', 'example'], rows)
}
