import type * as z from 'zod/mini'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import type { MountRequest } from '../../src/request/mount-request.ts'
import { readRequest } from '../../src/request/request.ts'
import { optionsSchema } from '../../src/request/schema.ts'
import { kinds } from '../../src/volume/index.ts'
import { type Described, KUBELET_TEXTS, OPTION_TEXTS } from './request-descriptions.ts'
import { valuesOf } from './schema-values.ts'
import { code, table } from './table.ts'

const HEAD = ['key', 'allowed', 'default', 'meaning', 'example']

/** What a request is made of where a pod leaves a key out: asked of the code that reads requests. */
const LEFT_OUT: MountRequest = readRequest(
  '/unused',
  '{"kubernetes.io/fsType":"tmpfs"}',
  { ...DEFAULT_CONFIG, allowedFsTypes: ['tmpfs'] },
  kinds,
)
const MEMBERS: Readonly<Record<string, keyof MountRequest>> = {
  ownership: 'ownership',
  groupAccess: 'groupAccess',
  fsGroupChangePolicy: 'changePolicy',
  restoreOnUnmount: 'restoreOnUnmount',
  subPath: 'subPath',
  mountOptions: 'mountOptions',
  idmapFrom: 'idmapFrom',
}
const WORDS: Readonly<Record<string, string>> = {
  subPath: 'all of the source',
  mountOptions: 'none',
  idmapFrom: "the root's group",
}

function defaultOf(key: string): string {
  const member = MEMBERS[key]
  if (member === undefined) return '–'
  const value = LEFT_OUT[member]
  const isNothing = value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  return isNothing ? (WORDS[key] ?? '–') : code(String(value))
}

function rowFor(key: string, { text, example, values, appliesTo }: Described): string[] {
  const schema: z.core.$ZodType = optionsSchema.shape[key as keyof typeof optionsSchema.shape]
  const meaning = appliesTo === undefined ? text : `${text} For ${appliesTo}.`
  return [code(key), values ?? valuesOf(schema), defaultOf(key), meaning, code(`${key}: ${quoted(String(example))}`)]
}

/** YAML takes these for something else than text. */
const quoted = (text: string) => (/^[0-9]+$|^(true|false)$/.test(text) ? `"${text}"` : text)

export function authorOptions(): string {
  return table(
    HEAD,
    Object.entries(OPTION_TEXTS).map(([key, text]) => rowFor(key, text)),
  )
}

export function kubeletKeys(): string {
  const rows = Object.entries(KUBELET_TEXTS).map(([key, { text, example, values }]) => {
    const schema: z.core.$ZodType = optionsSchema.shape[key as keyof typeof optionsSchema.shape]
    return [code(key), values ?? valuesOf(schema), text, code(String(example))]
  })
  return table(['key', 'values', 'meaning', 'example'], rows)
}
