import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod/mini'
import { CONFIG_KEY_SCHEMAS } from '../../src/config/config.ts'
import { ALLOW_RULE_KEY_SCHEMAS, MAP_RULE_KEY_SCHEMAS } from '../../src/config/rule-schema.ts'
import { MANIFESTS_DIRECTORY } from './files.ts'
import { readChartValues } from './values.ts'

export type JsonSchema = z.core.JSONSchema.BaseSchema

const DISTRIBUTIONS = readdirSync(join(MANIFESTS_DIRECTORY, 'overlays')).sort()

const createFlag = () => z.boolean()
const createPatternSchema = (pattern: RegExp) => z.string().check(z.regex(pattern))
const createStringsMap = () => z.record(z.string(), z.string())
/** Objects of Kubernetes, whose fields the API server checks. */
const createKubernetesObject = () => z.looseObject({})
const createQuantities = () => z.optional(z.record(z.string(), z.union([z.string(), z.number()])))
const createResources = () => z.optional(z.strictObject({ requests: createQuantities(), limits: createQuantities() }))

/** Creates the schema of `config`: what the node's configuration allows, as far as a JSON schema can express it. */
function createConfigSchema() {
  const rules = (keys: Readonly<Record<string, () => unknown>>) => z.array(createKeysSchema(keys))
  return createKeysSchema({
    ...CONFIG_KEY_SCHEMAS,
    // The schemas of these keys check the rules in code, which no JSON schema has.
    allow: () => rules(ALLOW_RULE_KEY_SCHEMAS),
    map: () => rules(MAP_RULE_KEY_SCHEMAS),
  })
}

function createKeysSchema(keys: Readonly<Record<string, () => unknown>>) {
  const entries = Object.entries(keys).map(([key, schema]) => [key, z.optional(schema() as z.ZodMiniType)])
  return z.strictObject(Object.fromEntries(entries) as Record<string, z.ZodMiniType>)
}

const createValues = () =>
  z.strictObject({
    distribution: z.enum(DISTRIBUTIONS),
    pluginDirectory: createPatternSchema(/^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/),
    image: z.strictObject({
      repository: createPatternSchema(/^[a-z0-9][a-zA-Z0-9._:/-]*$/),
      tag: createPatternSchema(/^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$/),
      digest: createPatternSchema(/^(sha256:[0-9a-f]{64})?$/),
      pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
    }),
    imagePullSecrets: z.array(z.strictObject({ name: z.string() })),
    config: createConfigSchema(),
    doors: z.strictObject({
      heal: z.strictObject({
        enabled: createFlag(),
        devices: createFlag(),
        args: z.array(createPatternSchema(/^--/)),
      }),
      csi: z.strictObject({ enabled: createFlag() }),
      nri: z.strictObject({ enabled: createFlag() }),
      devicePlugin: z.strictObject({
        enabled: createFlag(),
        devices: z.int().check(z.gte(1), z.lte(MAX_DEVICES)),
      }),
    }),
    resources: z.strictObject({
      install: createResources(),
      heal: createResources(),
      csi: createResources(),
      nri: createResources(),
      devicePlugin: createResources(),
    }),
    metrics: z.strictObject({
      enabled: createFlag(),
      podMonitor: z.strictObject({ enabled: createFlag(), labels: createStringsMap() }),
    }),
    policies: z.strictObject({ inlineByLabel: createFlag(), anyVolume: createFlag() }),
    maxUnavailable: z.union([z.int().check(z.gte(1)), createPatternSchema(/^[1-9][0-9]?%$|^100%$/)]),
    priorityClassName: z.string(),
    nodeSelector: createStringsMap(),
    tolerations: z.array(createKubernetesObject()),
    affinity: createKubernetesObject(),
    podLabels: createStringsMap(),
    podAnnotations: createStringsMap(),
    uninstall: z.strictObject({ enabled: createFlag(), purge: createFlag() }),
    // A parent chart passes it to each of its charts.
    global: z.optional(createKubernetesObject()),
  })

const MAX_DEVICES = 10_000

/** Returns the content of values.schema.json, in a draft that every Helm 3 knows, with the comments of values.yaml. */
export function createValuesSchema(): JsonSchema {
  const schema = z.toJSONSchema(createValues(), { target: 'draft-7', io: 'input' })
  for (const { path, meaning } of readChartValues()) {
    const described = findValueSchema(schema, path)
    if (described !== undefined && meaning !== '') described.description = meaning
  }
  return schema
}

/** Returns the part of the schema for a value like `doors.csi.enabled`; undefined if it allows no such value. */
export function findValueSchema(schema: JsonSchema, path: string): JsonSchema | undefined {
  return path
    .split('.')
    .reduce<JsonSchema | undefined>((part, key) => part?.properties?.[key] as JsonSchema | undefined, schema)
}

/** Returns the text of values.schema.json. */
export const formatValuesSchema = (): string => `${JSON.stringify(createValuesSchema(), null, 2)}\n`
