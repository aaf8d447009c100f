import type * as z from 'zod/mini'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { type RecordedRequest, toRecordedRequest } from '../../src/config/mount-request.ts'
import { parseFlexVolumeRequest, volumeOptionsSchema } from '../../src/config/request.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { type AuthorOption, type AuthorOptionKey, KUBELET_TEXTS, OPTION_TEXTS } from './request-descriptions.ts'
import { describeSchemaValues } from './schema-values.ts'
import { formatMarkdownCode, formatMarkdownTable } from './table.ts'

const POD_OPTIONS_TABLE_HEAD = ['key', 'allowed', 'default', 'meaning', 'example']

/** What a request is made of where a pod leaves a key out: asked of the code that reads requests. */
const DEFAULT_RECORDED_REQUEST = toRecordedRequest(
  parseFlexVolumeRequest('/unused', '{"kubernetes.io/fsType":"tmpfs"}', DEFAULT_CONFIG, volumeKindLookup),
)

function formatDefaultValue(key: AuthorOptionKey, { member, leftOut }: AuthorOption): string {
  const value = DEFAULT_RECORDED_REQUEST[member ?? (key as keyof RecordedRequest)]
  const isNothing = value === undefined || typeof value === 'object'
  if (isNothing !== (leftOut !== undefined)) {
    throw new Error(`what ${key} is where it is left out: see scripts/docs/request-descriptions.ts`)
  }
  return leftOut ?? formatMarkdownCode(String(value))
}

function createOptionRow(key: AuthorOptionKey, option: AuthorOption): string[] {
  const { text, example, values, appliesTo } = option
  const schema: z.core.$ZodType = volumeOptionsSchema.shape[key]
  const meaning = appliesTo === undefined ? text : `${text} For ${appliesTo}.`
  return [
    formatMarkdownCode(key),
    values ?? describeSchemaValues(schema),
    formatDefaultValue(key, option),
    meaning,
    formatMarkdownCode(`${key}: ${quoteForYaml(String(example))}`),
  ]
}

/** YAML takes these for something else than text. */
const quoteForYaml = (text: string) => (/^[0-9]+$|^(true|false)$/.test(text) ? `"${text}"` : text)

export function createAuthorOptionsTable(): string {
  return formatMarkdownTable(
    POD_OPTIONS_TABLE_HEAD,
    (Object.keys(OPTION_TEXTS) as AuthorOptionKey[]).map((key) => createOptionRow(key, OPTION_TEXTS[key])),
  )
}

export function createKubeletKeysTable(): string {
  const rows = Object.entries(KUBELET_TEXTS).map(([key, { text, example, values }]) => {
    const schema: z.core.$ZodType = volumeOptionsSchema.shape[key as keyof typeof volumeOptionsSchema.shape]
    return [formatMarkdownCode(key), values ?? describeSchemaValues(schema), text, formatMarkdownCode(String(example))]
  })
  return formatMarkdownTable(['key', 'values', 'meaning', 'example'], rows)
}
