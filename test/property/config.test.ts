import fc, { type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { quoteValue } from '../../src/errors/refusal.ts'
import { corpus } from './corpus.ts'
import { holds } from './holds.ts'
import { anyText, damaged, prototypeNames } from './texts.ts'

const FILE = '/etc/modekeep/config.json'
const KEYS = Object.keys(DEFAULT_CONFIG) as (keyof NodeConfig)[]

const path = fc.oneof(
  fc
    .array(fc.constantFrom('a', 'b c', '...', 'é', '\u{1f600}'), { minLength: 1 })
    .map((names) => `/${names.join('/')}`),
  fc.constantFrom(
    '/',
    '',
    'a',
    '/a/',
    '/a/../b',
    '/proc/1',
    '/sys',
    '/a\0b',
    '//a',
    '/*',
    '/a/{namespace}/*',
    '{namespace}',
    '/a*',
    '//server/share',
    'host:/export',
  ),
)
const paths = fc.array(path, { maxLength: 3 })

const values: Readonly<Record<keyof NodeConfig, Arbitrary<unknown>>> = {
  csiPodInfoOnMount: fc.constantFrom(true, false, 'true'),
  stateDir: path,
  logFile: path,
  logLevel: fc.constantFrom('error', 'warn', 'info', 'debug', 'Info'),
  allow: fc.array(
    fc.record(
      {
        namespaces: fc.array(fc.constantFrom('shop', 'team-*', '*', 'A')),
        sources: paths,
        fsTypes: fc.array(fc.constantFrom('bind', 'tmpfs', 'ext4', 'fuse.sshfs')),
        fsGroups: fc.array(fc.oneof(fc.nat().map(String), anyText)),
        mountOptions: fc.array(fc.oneof(anyText, prototypeNames)),
        readOnly: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 3 },
  ),
  map: fc.array(
    fc.record(
      {
        namespaces: fc.array(fc.constantFrom('shop', 'team-*', '*', 'A')),
        volumes: fc.array(fc.oneof(fc.constantFrom('csi', 'hostPath', 'kubernetes.io/nfs'), anyText)),
        sources: paths,
        groups: fc.array(fc.oneof(fc.nat().map(String), anyText)),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 3 },
  ),
  stateQuota: fc.oneof(fc.nat(), fc.double(), fc.constantFrom(0, -1, 2 ** 20, 2 ** 40, 1e308)),
  tmpfsMaxSize: fc.constantFrom('64m', '1G', '65536', '65535', '4096g', '4097g', '0', '-1', '50%', 'x'),
  helperTimeoutSeconds: fc.oneof(fc.nat(), fc.double(), fc.constantFrom(0, -1, 1e308)),
  busyUnmountSeconds: fc.oneof(fc.nat(), fc.double(), fc.constantFrom(0, -1, 1e308)),
  capabilities: fc.dictionary(fc.constantFrom('selinuxRelabel', 'supportsMetrics', 'attach'), fc.boolean()),
}

const entry = fc
  .constantFrom(...KEYS)
  .chain((key) => fc.tuple(fc.constant(key as string), fc.oneof({ weight: 6, arbitrary: values[key] }, fc.jsonValue())))
const objects = fc
  .uniqueArray(fc.oneof({ weight: 9, arbitrary: entry }, fc.tuple(fc.oneof(anyText, prototypeNames), fc.jsonValue())), {
    selector: ([key]) => key,
    maxLength: 6,
  })
  .map((list) => `{${list.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`)
const texts = fc.oneof(objects, damaged(objects), fc.json(), anyText)

/** Asserts what holds for any text. */
function expectPromises(text: string): void {
  const { config, faults } = parseConfig(text, FILE)
  expect(Object.keys(config)).toEqual(Object.keys(DEFAULT_CONFIG))
  // What is in force is itself a configuration without a fault, and reads as the same.
  const printed = parseConfig(JSON.stringify(config), FILE)
  expect(printed.faults).toEqual([])
  expect(printed.config).toEqual(config)
  for (const fault of faults)
    expect(renderFault(fault)).toMatch(/^node configuration \/etc\/modekeep\/config\.json.{10}/s)
  const given = membersOf(text)
  if (given === undefined) {
    expect(faults).toHaveLength(1)
    expect(config).toEqual(DEFAULT_CONFIG)
  } else {
    for (const key of Object.keys(given)) {
      if (isKey(key) && faults.every((fault) => !renderFault(fault).includes(`key "${key}`)))
        expect(isInForce(config, given, key)).toBe(true)
      if (!isKey(key))
        expect(faults.map((fault) => renderFault(fault)).join('\n')).toContain(`key ${shortened(quoteValue(key))}`)
    }
    for (const key of KEYS) if (!Object.hasOwn(given, key)) expect(config[key]).toEqual(DEFAULT_CONFIG[key])
  }
  // Never from a prototype.
  expect(Object.getPrototypeOf(config)).toBe(Object.prototype)
}

function membersOf(text: string): Record<string, unknown> | undefined {
  try {
    const parsed = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

function isKey(key: string): key is keyof NodeConfig {
  return (KEYS as string[]).includes(key)
}

function isInForce(config: NodeConfig, given: Record<string, unknown>, key: keyof NodeConfig): boolean {
  const wanted = key === 'capabilities' ? { ...DEFAULT_CONFIG.capabilities, ...(given[key] as object) } : given[key]
  return JSON.stringify(config[key]) === JSON.stringify(wanted)
}

const shortened = (quoted: string) => quoted.slice(0, 120)

describe('any configuration of the node', () => {
  it.each(corpus('config'))('has a valid value for every key, and faults are named: %s', (_name, content) => {
    expectPromises(content.toString())
  })

  it('has a valid value for every key, and faults are named', () => {
    holds(texts, expectPromises, 4000)
  })
})
