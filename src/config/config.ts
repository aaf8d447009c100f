import * as z from 'zod/mini'
import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue } from '../errors/refusal.ts'
import { LOG_LEVELS } from '../log/call-log.ts'
import { DEFAULT_CONFIG, type NodeConfig, parseSize } from './defaults.ts'
import {
  createAllowRulesSchema,
  createEnumSchema,
  createFlagSchema,
  createMapRulesSchema,
  createSchemaError,
  formatReplacementRules,
  isReplacedConfigKey,
} from './rule-schema.ts'

/** Without a lookahead, because Helm checks values by this pattern, and its expressions have none. */
const ABSOLUTE_PATH_PATTERN = /^(\/|(\/([^/.\0][^/\0]*|\.[^/.\0][^/\0]*|\.\.[^/\0]+))+)$/
const absolutePathError = createSchemaError('write an absolute path without "..", "." or a trailing slash')
// A recursive mkdir below /proc never ends (Node 26.10).
const isUsableNodePath = (path: string) => path !== '/' && !/^\/(proc|sys)(\/|$)/.test(path)
const nodePathError = createSchemaError('choose a path of its own, outside /proc and /sys')
const createPathSchema = () =>
  z
    .string(absolutePathError)
    .check(z.regex(ABSOLUTE_PATH_PATTERN, absolutePathError))
    .check(z.refine(isUsableNodePath, nodePathError))
/** Each number has a range without overflow: Node's timers fire at once above 2,147,483 seconds. */
const createNumberSchema = (min: number, max: number, unit: string) => {
  const rule = createSchemaError(`write ${unit} as a number from ${min} to ${max}`)
  return z.number(rule).check(z.gte(min, rule), z.lte(max, rule))
}
const BYTES_PER_MIB = 2 ** 20
const BYTES_PER_TIB = 2 ** 40

// A smaller tmpfs has no space for its root, and no node has the memory for a larger one.
const isTmpfsSize = (text: string) => {
  const size = parseSize(text)
  return size !== undefined && size >= 2 ** 16 && size <= 2 ** 42
}
const tmpfsSizeError = createSchemaError('write a size from 64k to 4096g, such as "64m"')

/**
 * Each key has its own schema, so an invalid key does not invalidate the others. A call creates only the schemas of the
 * keys that it finds.
 */
export const CONFIG_KEY_SCHEMAS = {
  stateDir: createPathSchema,
  logFile: createPathSchema,
  logLevel: () => createEnumSchema(LOG_LEVELS),
  allow: createAllowRulesSchema,
  map: createMapRulesSchema,
  helperTimeoutSeconds: () => createNumberSchema(0.1, 86_400, 'seconds'),
  busyUnmountSeconds: () => createNumberSchema(0, 86_400, 'seconds'),
  stateQuota: () => createNumberSchema(BYTES_PER_MIB, BYTES_PER_TIB, 'bytes'),
  tmpfsMaxSize: () => z.string(tmpfsSizeError).check(z.refine(isTmpfsSize, tmpfsSizeError)),
  capabilities: () =>
    z.strictObject(
      { selinuxRelabel: createFlagSchema(), supportsMetrics: createFlagSchema() },
      {
        error: (issue) =>
          issue.code === 'unrecognized_keys'
            ? `has ${quoteValue(issue.keys)}: only selinuxRelabel and supportsMetrics can be set`
            : `is ${quoteValue(issue.input)}: write an object`,
      },
    ),
  csiPodInfoOnMount: createFlagSchema,
}

const createConfigFault = (reason: string, remedy?: string) => createFault('config-invalid', reason, remedy)

/**
 * Parses the configuration. An invalid key falls back to its default and is named in `faults`.
 * Mounts are then refused. Init and unmount go on, because they must work on a node with an invalid configuration.
 */
export function parseConfig(text: string, file: string): { config: NodeConfig; faults: Fault[] } {
  const invalid = (reason: string) => ({ config: DEFAULT_CONFIG, faults: [createFault('config-invalid', reason)] })
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    return invalid(`node configuration ${file} is not JSON: ${message}; until it is corrected mounts are refused`)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    return invalid(`node configuration ${file} is not a JSON object`)
  const config: Record<string, unknown> = { ...DEFAULT_CONFIG }
  const faults: Fault[] = []
  const replacedKeys = Object.keys(parsed).filter(isReplacedConfigKey)
  if (replacedKeys.length > 0) {
    const have = replacedKeys.length === 1 ? 'has' : 'have'
    const rules = formatReplacementRules(parsed as Record<string, unknown>)
    faults.push(
      createConfigFault(
        `node configuration ${file}: ${replacedKeys.join(', ')} ${have} been replaced by "allow"`,
        `write ${rules} instead, with {namespace} in sources where each namespace is to have its own`,
      ),
    )
  }
  for (const [key, value] of Object.entries(parsed)) {
    if (isReplacedConfigKey(key)) continue
    const schema = Object.hasOwn(CONFIG_KEY_SCHEMAS, key)
      ? CONFIG_KEY_SCHEMAS[key as keyof typeof CONFIG_KEY_SCHEMAS]
      : undefined
    if (!schema) {
      const keys = Object.keys(CONFIG_KEY_SCHEMAS).join(', ')
      faults.push(
        createConfigFault(`node configuration ${file}: key ${quoteValue(key)} is unknown`, `the keys are ${keys}`),
      )
      continue
    }
    const result = z.safeParse(schema() as z.ZodMiniType, value)
    if (result.success)
      config[key] = key === 'capabilities' ? { ...DEFAULT_CONFIG.capabilities, ...(value as object) } : value
    for (const issue of result.error?.issues ?? [])
      faults.push(
        createConfigFault(`node configuration ${file}: key "${[key, ...issue.path].join('.')}" ${issue.message}`),
      )
  }
  return { config: config as unknown as NodeConfig, faults }
}
