import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { rendered } from '../helpers/rendered.ts'

const SECONDS = 'write seconds as a number from 0.1 to 86400'
const BYTES = 'write bytes as a number from 1048576 to 1099511627776'
const FILE = '/etc/modekeep/config.json'
const KEYS =
  'stateDir, logFile, logLevel, allow, map, helperTimeoutSeconds, busyUnmountSeconds, stateQuota, tmpfsMaxSize, capabilities, csiPodInfoOnMount'
const PATH = 'write an absolute path without "..", "." or a trailing slash'
const DISK = 'choose a path of its own, outside /proc and /sys'

function parse(config: unknown) {
  return parseConfig(JSON.stringify(config), FILE)
}

describe("the node's configuration", () => {
  it('an empty configuration file has the default of every key, and the defaults deny other sources', () => {
    expect(parse({})).toEqual({ config: DEFAULT_CONFIG, faults: [] })
    expect(DEFAULT_CONFIG).toEqual({
      stateDir: '/var/lib/modekeep',
      logFile: '/var/log/modekeep/modekeep.log',
      logLevel: 'info',
      allow: [{ sources: ['/var/lib/modekeep/volumes/{namespace}/*'] }],
      map: [{}],
      tmpfsMaxSize: '64m',
      helperTimeoutSeconds: 60,
      busyUnmountSeconds: 60,
      stateQuota: 2 ** 30,
      capabilities: { selinuxRelabel: false, supportsMetrics: true },
      csiPodInfoOnMount: false,
    })
  })

  it.each([
    ['stateDir', '/srv/state'],
    ['stateDir', '/..a/b c'],
    ['stateDir', '/process/state'],
    ['stateDir', '/srv/proc'],
    ['logFile', '/srv/log'],
    ['logFile', '/system/sys/log'],
    ['allow', []],
    ['allow', [{}]],
    ['allow', [{ sources: ['/proc/*', '/*', '/srv/a', '/srv/{namespace}/*', '/srv/{namespace}'] }]],
    ['allow', [{ sources: ['//server/*', '//10.0.0.1/share/a b/*', '//::1/share', '//server/{namespace}'] }]],
    ['allow', [{ sources: ['bucket', 'bucket/*', 'remote:', 'remote:bucket/a b', 'me@host:/home/{namespace}/*'] }]],
    ['allow', [{ sources: ['nfs:/', 'nfs:/*', '10.0.0.1:/a', '[fe80::1%eth0]:/a/*'] }]],
    ['allow', [{ namespaces: ['shop', 'team-*'], fsTypes: ['ext4'], ownership: ['auto'], groupAccess: ['keep'] }]],
    ['allow', [{ fsGroups: ['0', '2000-2999', '4294967294'], idmapFrom: ['100'], mountOptions: ['suid', 'sec=krb5'] }]],
    ['allow', [{ readOnly: true, singleNode: true }, { readOnly: false }]],
    ['map', []],
    [
      'map',
      [{ namespaces: ['shop'], volumes: ['csi', 'hostPath', 'kubernetes.io/nfs'], groups: ['2000', '3000-3999'] }],
    ],
    ['map', [{ sources: ['/srv/shared', '/srv/{namespace}/*'], fsTypes: ['tmpfs'] }]],
    ['logLevel', 'error'],
    ['logLevel', 'warn'],
    ['logLevel', 'info'],
    ['logLevel', 'debug'],
    ['tmpfsMaxSize', '64k'],
    ['tmpfsMaxSize', '4096G'],
    ['helperTimeoutSeconds', 0.5],
    ['helperTimeoutSeconds', 0.1],
    ['helperTimeoutSeconds', 86_400],
    ['busyUnmountSeconds', 0],
    ['busyUnmountSeconds', 86_400],
    ['stateQuota', 2 ** 20],
    ['stateQuota', 2 ** 40],
    ['capabilities', { selinuxRelabel: true, supportsMetrics: false }],
  ])("the node's configuration accepts key %s with value %j", (key, value) => {
    expect(parse({ [key]: value })).toEqual({ config: { ...DEFAULT_CONFIG, [key]: value }, faults: [] })
  })

  it('a configuration that sets one capability keeps the default of the other capability', () => {
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
    ['csiPodInfoOnMount', 'true', 'key "csiPodInfoOnMount" is "true": write true or false'],
    ['allow', '/srv', 'key "allow" is "/srv": write a list of rules'],
    ['allow', ['/srv'], 'key "allow.0" is "/srv": write an object'],
    ['allow', [{ sources: '/srv' }], 'key "allow.0.sources" is "/srv": write a list'],
    ['allow', [{ fsTypes: [1] }], 'key "allow.0.fsTypes.0" is 1: write a file system type'],
    ['allow', [{ namespaces: ['A'] }], expect.stringContaining('key "allow.0.namespaces.0" is "A": write the name of')],
    ['allow', [{}, { ownership: ['all'] }], 'key "allow.1.ownership.0" is "all": use one of none, walk, idmap, auto'],
    ['allow', [{ groupAccess: [''] }], 'key "allow.0.groupAccess.0" is "": use one of keep, grant'],
    ['allow', [{ mountOptions: ['a,b'] }], 'key "allow.0.mountOptions.0" is "a,b": write a mount option'],
    ['map', {}, 'key "map" is {}: write a list of rules'],
    [
      'map',
      [{ volumes: ['kubernetes.io/'] }],
      expect.stringContaining('key "map.0.volumes.0" is "kubernetes.io/": write a kind'),
    ],
    [
      'map',
      [{ sources: ['server:/a'] }],
      expect.stringContaining('key "map.0.sources.0" is "server:/a": write "/srv/shared/*"'),
    ],
    ['map', [{ groups: ['2000-'] }], expect.stringContaining('key "map.0.groups.0" is "2000-": write a group')],
    [
      'map',
      [{ ownership: ['walk'] }],
      expect.stringContaining('the keys of a rule are namespaces, volumes, sources, fsTypes, groups'),
    ],
    ['allow', [{ readOnly: 1 }], 'key "allow.0.readOnly" is 1: write true or false'],
    [
      'allow',
      [{ source: ['/srv'] }],
      expect.stringContaining('key "allow.0" has ["source"]: the keys of a rule are namespaces,'),
    ],
    ['helperTimeoutSeconds', '60', `key "helperTimeoutSeconds" is "60": ${SECONDS}`],
    ['helperTimeoutSeconds', 0, `key "helperTimeoutSeconds" is 0: ${SECONDS}`],
    ['helperTimeoutSeconds', -1, `key "helperTimeoutSeconds" is -1: ${SECONDS}`],
    ['helperTimeoutSeconds', 86_401, `key "helperTimeoutSeconds" is 86401: ${SECONDS}`],
    // A timer of Node's was over at once, and healthy daemons were ended.
    ['helperTimeoutSeconds', 2_147_484, `key "helperTimeoutSeconds" is 2147484: ${SECONDS}`],
    ['helperTimeoutSeconds', 1e308, `key "helperTimeoutSeconds" is 1e+308: ${SECONDS}`],
    ['stateQuota', '1 GiB', `key "stateQuota" is "1 GiB": ${BYTES}`],
    ['stateQuota', 1024, `key "stateQuota" is 1024: ${BYTES}`],
    ['stateQuota', 2 ** 41, `key "stateQuota" is 2199023255552: ${BYTES}`],
    ['capabilities', true, 'key "capabilities" is true: write an object'],
    ['capabilities', { supportsMetrics: 'yes' }, 'key "capabilities.supportsMetrics" is "yes": write true or false'],
    [
      'capabilities',
      { attach: true },
      'key "capabilities" has ["attach"]: only selinuxRelabel and supportsMetrics can be set',
    ],
    ['alow', [], `key "alow" is unknown: the keys are ${KEYS}`],
    ['__proto__', 'x', `key "__proto__" is unknown: the keys are ${KEYS}`],
  ])('the configuration refuses %s: %j and uses the default', (key, value, fault) => {
    // Written by hand: in an object literal __proto__ would be no key.
    const { config, faults } = parseConfig(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`, FILE)
    expect(rendered(faults)).toEqual([typeof fault === 'string' ? `node configuration ${FILE}: ${fault}` : fault])
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
      'nfs:/a/../b',
      'a b:/c',
      'a,b:/c',
      '[x]:/a',
      'nfs:/a//b',
      '/',
      '/a/*/b',
      '/a/b*',
      '/a{namespace}',
      '/{namespace}x/*',
      '//{namespace}/share',
      '{namespace}',
      '{namespace}:/a',
      '/a/{name}/*',
      '*',
    ],
  ])('a rule with the source %s, which no kind of volume has, is refused', (source) => {
    const { config, faults } = parse({ allow: [{ sources: [source] }] })
    expect(rendered(faults)).toEqual([
      expect.stringContaining(`key "allow.0.sources.0" is "${source}": write "/srv/volumes/*" for`),
    ])
    expect(config).toEqual(DEFAULT_CONFIG)
  })

  it.each([
    ['one', { allowedSources: ['/srv/'] }, '[{"sources":["/srv/*"],"fsTypes":["bind","tmpfs"]}]'],
    [
      'all',
      {
        allowedSources: ['/', 'nfs:/a', '//s', 'bucket'],
        allowedFsTypes: ['bind', 'nfs'],
        allowedMountOptions: { nfs: ['hard'], cifs: ['seal'] },
      },
      '[{"sources":["/*","nfs:/a/*","//s/*","bucket"],"fsTypes":["nfs"],"mountOptions":["hard"]},{"sources":["/*","nfs:/a/*","//s/*","bucket"],"fsTypes":["bind"]}]',
    ],
    ['nonsense', { allowedMountOptions: 5, allowedSources: { a: 1 } }, '[{"sources":[],"fsTypes":["bind","tmpfs"]}]'],
  ])('a configuration of an earlier version is refused with the rules to write instead: %s', (_what, old, rules) => {
    const { config, faults } = parse(old)
    expect(rendered(faults)).toEqual([
      expect.stringContaining(`been replaced by "allow": write "allow": ${rules} instead`),
    ])
    expect(config).toEqual(DEFAULT_CONFIG)
    expect(parse({ allow: JSON.parse(rules) }).faults).toEqual([])
  })

  it.each(['2000-', '-1', '3-2', '01', '4294967295', '1-2-3', ' 1', '1e3'])(
    'the configuration refuses %j as a group',
    (text) => {
      const fault = `${JSON.stringify(text)}: write a group like "2000" or a range like "2000-2999"`
      for (const key of ['fsGroups', 'idmapFrom']) {
        expect(rendered(parse({ allow: [{ [key]: [text] }] }).faults)).toEqual([
          `node configuration ${FILE}: key "allow.0.${key}.0" is ${fault}`,
        ])
      }
    },
  )

  it('an invalid key of the configuration gets its default, and valid keys keep their values', () => {
    const { config, faults } = parse({ stateDir: '/srv/state', logLevel: 'loud', typo: 1, allow: [] })
    expect(config).toEqual({ ...DEFAULT_CONFIG, stateDir: '/srv/state', allow: [] })
    expect(rendered(faults)).toEqual([
      `node configuration ${FILE}: key "logLevel" is "loud": use one of error, warn, info, debug`,
      `node configuration ${FILE}: key "typo" is unknown: the keys are ${KEYS}`,
    ])
  })

  it.each([
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"x"'],
    ['a number', '5'],
  ])('a configuration file whose JSON is %s instead of an object is refused', (_what, text) => {
    expect(rendered(parseConfig(text, FILE))).toEqual({
      config: DEFAULT_CONFIG,
      faults: [`node configuration ${FILE} is not a JSON object`],
    })
  })

  it.each([[''], ['{'], ['{"stateDir":"/a",}'], ['stateDir: /a']])(
    'a configuration that is no JSON is refused: %j',
    (text) => {
      const { config, faults } = parseConfig(text, FILE)
      expect(config).toEqual(DEFAULT_CONFIG)
      expect(rendered(faults)).toEqual([
        expect.stringMatching(/^node configuration \/etc\/modekeep\/config\.json is not JSON: \S/),
      ])
    },
  )
})
