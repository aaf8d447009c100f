import * as fs from 'node:fs'
import { provideDebianFile } from '../../scripts/fetch/debian.ts'
import { OPENAPI_SCHEMA_FILE } from '../../scripts/fetch/pinned.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'

interface Schema {
  $ref?: string
  type?: string
  format?: string
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: Schema
  required?: string[]
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}

let known: Record<string, Schema> | undefined

/** Those of Kubernetes 1.20. */
const definitions = skipIfUnavailable(() => {
  known ??= JSON.parse(fs.readFileSync(provideDebianFile(OPENAPI_SCHEMA_FILE), 'utf8')).definitions as Record<
    string,
    Schema
  >
  return known
})

/** What newer Kubernetes added of what the manifests use: `hostUsers` is a field since 1.25, `appArmorProfile` since 1.30. */
const NEWER: Record<string, Record<string, Schema>> = {
  'io.k8s.api.core.v1.PodSpec': { hostUsers: { type: 'boolean' } },
  'io.k8s.api.core.v1.SecurityContext': {
    appArmorProfile: {
      type: 'object',
      properties: { type: { type: 'string' }, localhostProfile: { type: 'string' } },
      required: ['type'],
    },
  },
}

export interface Options {
  /** Fields that Kubernetes got after 1.20 are known too. */
  newer: boolean
}

/**
 * What the API server would find wrong with a manifest's form: unknown fields, missing ones, values of another type.
 * @returns one sentence a fault, with the path of the field
 */
export function faultsIn(resource: unknown, { newer }: Options): string[] {
  const { apiVersion = '', kind = '' } = (resource ?? {}) as { apiVersion?: string; kind?: string }
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
  const found = Object.entries(definitions()).find(([, schema]) =>
    schema['x-kubernetes-group-version-kind']?.some(
      (of) => of.kind === kind && of.group === group && of.version === version,
    ),
  )
  if (found === undefined) return [`no schema for ${apiVersion} ${kind}`]
  return check(resource, { $ref: `#/definitions/${found[0]}` }, kind, newer)
}

function check(value: unknown, schema: Schema, path: string, newer: boolean): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/definitions/', '')
    const definition = definitions()[name]
    if (definition === undefined) return [`${path}: no definition ${name}`]
    // A quantity may be written without quotes.
    if (name.endsWith('.resource.Quantity') && typeof value === 'number') return []
    const properties = { ...definition.properties, ...(newer ? NEWER[name] : {}) }
    return check(value, definition.properties === undefined ? definition : { ...definition, properties }, path, newer)
  }
  const { type = 'object', format, items, properties, additionalProperties, required = [] } = schema
  if (!isOf(type, format, value)) return [`${path} is ${JSON.stringify(value)}: not ${format ?? type}`]
  if (Array.isArray(value)) return value.flatMap((item, index) => check(item, items ?? {}, `${path}[${index}]`, newer))
  if (typeof value !== 'object' || value === null) return []
  const missing = required.filter((key) => !(key in value)).map((key) => `${path}.${key} is missing`)
  const entries = Object.entries(value).flatMap(([key, part]) => {
    const of = properties?.[key] ?? additionalProperties
    if (of !== undefined) return check(part, of, `${path}.${key}`, newer)
    // An object without any property in its schema is free.
    return properties === undefined ? [] : [`${path}.${key} is unknown`]
  })
  return [...missing, ...entries]
}

function isOf(type: string, format: string | undefined, value: unknown): boolean {
  if (format === 'int-or-string') return typeof value === 'string' || Number.isInteger(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'number') return typeof value === 'number'
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}
