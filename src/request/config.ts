import * as z from 'zod/mini'
import { LOG_LEVELS } from '../log/call-log.ts'
import { quoted } from '../refusal/refusal.ts'
import { DEFAULT_CONFIG, type NodeConfig } from './defaults.ts'
import { isOldKey, mapRulesSchema, rulesInstead, rulesSchema } from './rule-schema.ts'
import { sizeOf } from './size.ts'
import { flag, wants } from './wants.ts'

const normalAbsolute = (path: string) => path === '/' || (/^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path))
const pathRule = wants('write an absolute path without "..", "." or a trailing slash')
// Making a directory below /proc never ends (Node 26.10, mkdir with recursive).
const onDisk = (path: string) => path !== '/' && !/^\/(proc|sys)(\/|$)/.test(path)
const diskRule = wants('choose a path of its own, outside /proc and /sys')
const ownPath = () => z.string(pathRule).check(z.refine(normalAbsolute, pathRule)).check(z.refine(onDisk, diskRule))
/** Each number has a range in which nothing overflows: a timer of Node's is over at once above 2,147,483 seconds. */
const number = (least: number, most: number, unit: string) => {
  const rule = wants(`write ${unit} as a number from ${least} to ${most}`)
  return z.number(rule).check(z.refine((value) => value >= least && value <= most, rule))
}
const MIB = 2 ** 20
const TIB = 2 ** 40

// Below, a tmpfs has no room for its root; above, no node has the memory.
const isSize = (text: string) => within(sizeOf(text), 2 ** 16, 2 ** 42)
const within = (size: number | undefined, least: number, most: number) =>
  size !== undefined && size >= least && size <= most

const size = () => {
  const rule = wants('write a size from 64k to 4096g, such as "64m"')
  return z.string(rule).check(z.refine(isSize, rule))
}

/** Each key by itself: one that is bad leaves the others in force. A call makes the rules of the keys that it finds. */
export const KEYS = {
  stateDir: ownPath,
  logFile: ownPath,
  logLevel: () => z.enum(LOG_LEVELS, wants(`use one of ${LOG_LEVELS.join(', ')}`)),
  allow: rulesSchema,
  map: mapRulesSchema,
  helperTimeoutSeconds: () => number(0.1, 86_400, 'seconds'),
  busyUnmountSeconds: () => number(0, 86_400, 'seconds'),
  stateQuota: () => number(MIB, TIB, 'bytes'),
  tmpfsMaxSize: size,
  capabilities: () =>
    z.strictObject(
      { selinuxRelabel: flag(), supportsMetrics: flag() },
      {
        error: (issue) =>
          issue.code === 'unrecognized_keys'
            ? `has ${quoted(issue.keys)}: only selinuxRelabel and supportsMetrics can be set`
            : `is ${quoted(issue.input)}: write an object`,
      },
    ),
  csiPodInfoOnMount: () => z.boolean(wants('write true or false')),
}

/**
 * Reads the configuration's text. A bad key falls back to its default and is named in `faults`: a mount refuses then,
 * while init and unmount, which must work on a node with an invalid configuration, go on.
 */
export function parseConfig(text: string, file: string): { config: NodeConfig; faults: string[] } {
  const invalid = (fault: string) => ({ config: DEFAULT_CONFIG, faults: [fault] })
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    return invalid(
      `node configuration ${file} is not JSON: ${(error as Error).message}; until it is corrected mounts are refused`,
    )
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    return invalid(`node configuration ${file} is not a JSON object`)
  const config: Record<string, unknown> = { ...DEFAULT_CONFIG }
  const faults: string[] = []
  const old = Object.keys(parsed).filter(isOldKey)
  if (old.length > 0) {
    faults.push(
      `node configuration ${file}: ${old.join(', ')} ${old.length === 1 ? 'has' : 'have'} been replaced by "allow": write ${rulesInstead(parsed as Record<string, unknown>)} instead, ` +
        'with {namespace} in sources where each namespace is to have its own',
    )
  }
  for (const [key, value] of Object.entries(parsed)) {
    if (isOldKey(key)) continue
    const schema = Object.hasOwn(KEYS, key) ? KEYS[key as keyof typeof KEYS] : undefined
    if (!schema) {
      faults.push(
        `node configuration ${file}: key ${quoted(key)} is unknown: the keys are ${Object.keys(KEYS).join(', ')}`,
      )
      continue
    }
    const result = z.safeParse(schema() as z.ZodMiniType, value)
    if (result.success)
      config[key] = key === 'capabilities' ? { ...DEFAULT_CONFIG.capabilities, ...(value as object) } : value
    for (const issue of result.error?.issues ?? []) {
      faults.push(`node configuration ${file}: key "${[key, ...issue.path].join('.')}" ${issue.message}`)
    }
  }
  return { config: config as unknown as NodeConfig, faults }
}
