import type * as z from 'zod/mini'
import { kinds } from '../../src/filesystem/index.ts'
import { DEFAULT_CONFIG } from '../../src/protocol/defaults.ts'
import { type Described, KUBELET_TEXTS, OPTION_TEXTS } from '../../src/protocol/descriptions.ts'
import { type MountRequest, readRequest } from '../../src/protocol/request.ts'
import { optionsSchema } from '../../src/protocol/schema.ts'
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
