import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/request/config.ts'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'

const SECONDS = 'write seconds as a number from 0.1 to 86400'
const FILE = '/etc/modekeep/config.json'
const KEYS =
  'stateDir, logFile, logLevel, allowedSources, allowedFsTypes, allowedMountOptions, helperTimeoutSeconds, capabilities'
const PATH = 'write an absolute path without "..", "." or a trailing slash'
const SOURCE = `${PATH}, //server/share, host:/export, or a name like bucket or remote:bucket`
const DISK = 'choose a path of its own, outside /proc and /sys'

function parse(config: unknown) {
  return parseConfig(JSON.stringify(config), FILE)
}

describe("the node's configuration", () => {
  it('may be empty: everything has a default, and the defaults deny', () => {
    expect(parse({})).toEqual({ config: DEFAULT_CONFIG, faults: [] })
    expect(DEFAULT_CONFIG).toEqual({
      stateDir: '/var/lib/modekeep',
      logFile: '/var/log/modekeep/modekeep.log',
      logLevel: 'info',
      allowedSources: ['/var/lib/modekeep/volumes'],
      allowedFsTypes: ['bind', 'tmpfs'],
      allowedMountOptions: {},
      helperTimeoutSeconds: 60,
      capabilities: { selinuxRelabel: false, supportsMetrics: true },
    })
  })

  it.each([
    ['stateDir', '/srv/state'],
    ['stateDir', '/..a/b c'],
    ['stateDir', '/process/state'],
    ['stateDir', '/srv/proc'],
    ['logFile', '/srv/log'],
    ['logFile', '/system/sys/log'],
    ['allowedSources', ['/proc', '/sys/fs']],
    ['logLevel', 'error'],
    ['logLevel', 'warn'],
    ['logLevel', 'info'],
    ['logLevel', 'debug'],
    ['allowedSources', []],
    ['allowedSources', ['/']],
    ['allowedSources', ['/srv', '/mnt/a']],
    ['allowedSources', ['//server', '//server/share', '//10.0.0.1/share/a b', '//[::1]/share']],
    ['allowedSources', ['bucket', 'remote:', 'remote:bucket', 'remote:bucket/a b', 'me@host']],
    ['allowedSources', ['nfs:/', 'nfs.example.com:/exports/a', '10.0.0.1:/a', '[fe80::1%eth0]:/a', 'me@host:/home']],
    ['allowedFsTypes', []],
    ['allowedFsTypes', ['bind']],
    ['allowedMountOptions', {}],
    ['allowedMountOptions', { bind: ['suid'], tmpfs: [] }],
    ['helperTimeoutSeconds', 0.5],
    ['helperTimeoutSeconds', 0.1],
    ['helperTimeoutSeconds', 86_400],
    ['capabilities', { selinuxRelabel: true, supportsMetrics: false }],
  ])('takes %s: %j', (key, value) => {
    expect(parse({ [key]: value })).toEqual({ config: { ...DEFAULT_CONFIG, [key]: value }, faults: [] })
  })

  it('takes one capability and keeps the default of the other', () => {
    const { config, faults } = parse({ capabilities: { selinuxRelabel: true } })
    expect(faults).toEqual([])
    expect(config.capabilities).toEqual({ selinuxRelabel: true, supportsMetrics: true })
  })

  it.each([
    ['stateDir', '/', 'key "stateDir" is "/": choose a path of its own, outside /proc and /sys'],
    ['stateDir', 5, `key "stateDir" is 5: ${PATH}`],
    ['stateDir', 'relative', `key "stateDir" is "relative": ${PATH}`],
    ['stateDir', '', `key "stateDir" is "": ${PATH}`],
    ['stateDir', '/a/../b', `key "stateDir" is "/a/../b": ${PATH}`],
    ['stateDir', '/a/', `key "stateDir" is "/a/": ${PATH}`],
    ['stateDir', '/a//b', `key "stateDir" is "/a//b": ${PATH}`],
    ['stateDir', '/a/./b', `key "stateDir" is "/a/./b": ${PATH}`],
    ['stateDir', '/a\0b', `key "stateDir" is "/a\\u0000b": ${PATH}`],
    ['stateDir', '/proc', `key "stateDir" is "/proc": ${DISK}`],
    ['stateDir', '/proc/self/modekeep', `key "stateDir" is "/proc/self/modekeep": ${DISK}`],
    ['stateDir', '/sys', `key "stateDir" is "/sys": ${DISK}`],
    ['stateDir', '/sys/modekeep', `key "stateDir" is "/sys/modekeep": ${DISK}`],
    ['logFile', '/a\0', `key "logFile" is "/a\\u0000": ${PATH}`],
    ['logFile', '/proc/modekeep.log', `key "logFile" is "/proc/modekeep.log": ${DISK}`],
    ['logFile', '/sys/modekeep.log', `key "logFile" is "/sys/modekeep.log": ${DISK}`],
    ['logFile', null, `key "logFile" is null: ${PATH}`],
    ['logFile', 'log', `key "logFile" is "log": ${PATH}`],
    ['logLevel', 'INFO', 'key "logLevel" is "INFO": use one of error, warn, info, debug'],
    ['logLevel', 3, 'key "logLevel" is 3: use one of error, warn, info, debug'],
    [
      'allowedSources',
      '/srv',
      'key "allowedSources" is "/srv": write a list of absolute paths, //server/share, host:/export or names',
    ],
    ['allowedSources', ['/srv', 'a/b'], `key "allowedSources.1" is "a/b": ${SOURCE}`],
    ['allowedSources', ['/srv\0'], `key "allowedSources.0" is "/srv\\u0000": ${SOURCE}`],
    ['allowedSources', [5], `key "allowedSources.0" is 5: ${SOURCE}`],
    ['allowedFsTypes', 'bind', 'key "allowedFsTypes" is "bind": write a list of file system types'],
    ['allowedFsTypes', [1], 'key "allowedFsTypes.0" is 1: write a string'],
    ['allowedMountOptions', [], 'key "allowedMountOptions" is []: map fsType to a list'],
    [
      'allowedMountOptions',
      { bind: 'suid' },
      'key "allowedMountOptions.bind" is "suid": write a list of mount options',
    ],
    ['allowedMountOptions', { bind: [true] }, 'key "allowedMountOptions.bind.0" is true: write a string'],
    ['helperTimeoutSeconds', '60', `key "helperTimeoutSeconds" is "60": ${SECONDS}`],
    ['helperTimeoutSeconds', 0, `key "helperTimeoutSeconds" is 0: ${SECONDS}`],
    ['helperTimeoutSeconds', -1, `key "helperTimeoutSeconds" is -1: ${SECONDS}`],
    ['helperTimeoutSeconds', 86_401, `key "helperTimeoutSeconds" is 86401: ${SECONDS}`],
    // A timer of Node's was over at once, and healthy daemons were ended.
    ['helperTimeoutSeconds', 2_147_484, `key "helperTimeoutSeconds" is 2147484: ${SECONDS}`],
    ['helperTimeoutSeconds', 1e308, `key "helperTimeoutSeconds" is 1e+308: ${SECONDS}`],
    ['capabilities', true, 'key "capabilities" is true: write an object'],
    ['capabilities', { supportsMetrics: 'yes' }, 'key "capabilities.supportsMetrics" is "yes": write true or false'],
    [
      'capabilities',
      { attach: true },
      'key "capabilities" has ["attach"]: only selinuxRelabel and supportsMetrics can be set',
    ],
    ['allowedSource', ['/srv'], `key "allowedSource" is unknown: the keys are ${KEYS}`],
    ['__proto__', 'x', `key "__proto__" is unknown: the keys are ${KEYS}`],
  ])('refuses %s: %j and falls back to the default', (key, value, fault) => {
    // Written by hand: in an object literal __proto__ would be no key.
    const { config, faults } = parseConfig(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`, FILE)
    expect(faults).toEqual([`node configuration ${FILE}: ${fault}`])
    expect(config).toEqual(DEFAULT_CONFIG)
  })

  it.each([
    ...['//', '//server/', '//server//share', '//server/../share', '///share', '//a,b/c', '/a//b'],
    ...[
      ':/a',
      'nfs:a/',
      'nfs:a/../b',
      'nfs:/a/',
      '-o',
      'a/b',
      'nfs:/a/../b',
      'n/fs:/a',
      'a b:/c',
      'a,b:/c',
      '[x]:/a',
      'nfs:/a//b',
    ],
  ])('refuses the source %s, which no kind of volume has', (source) => {
    const { config, faults } = parse({ allowedSources: [source] })
    expect(faults).toEqual([`node configuration ${FILE}: key "allowedSources.0" is "${source}": ${SOURCE}`])
    expect(config).toEqual(DEFAULT_CONFIG)
  })

  it('loses only the keys that are wrong', () => {
    const { config, faults } = parse({ stateDir: '/srv/state', logLevel: 'loud', typo: 1, allowedSources: ['/srv'] })
    expect(config).toEqual({ ...DEFAULT_CONFIG, stateDir: '/srv/state', allowedSources: ['/srv'] })
    expect(faults).toEqual([
      `node configuration ${FILE}: key "logLevel" is "loud": use one of error, warn, info, debug`,
      `node configuration ${FILE}: key "typo" is unknown: the keys are ${KEYS}`,
    ])
  })

  it.each([
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"x"'],
    ['a number', '5'],
  ])('that is %s is refused as no object', (_what, text) => {
    expect(parseConfig(text, FILE)).toEqual({
      config: DEFAULT_CONFIG,
      faults: [`node configuration ${FILE} is not a JSON object`],
    })
  })

  it.each([[''], ['{'], ['{"stateDir":"/a",}'], ['stateDir: /a']])('that is no JSON is refused: %j', (text) => {
    const { config, faults } = parseConfig(text, FILE)
    expect(config).toEqual(DEFAULT_CONFIG)
    expect(faults).toEqual([expect.stringMatching(/^node configuration \/etc\/modekeep\/config\.json is not JSON: \S/)])
  })
})
