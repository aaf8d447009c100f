import { describe, expect, it } from 'vitest'
import { checkAllowRules, checkSystemGroups } from '../../../src/cli/doctor/rules.ts'
import { type AllowRule, DEFAULT_ALLOW_RULES } from '../../../src/config/rule.ts'

const found = (...rules: AllowRule[]) => [...checkAllowRules(rules, '/c.json')]
const OWN = ['/v/{namespace}/*']
const warnings = (...rules: AllowRule[]) =>
  found(...rules)
    .filter(({ level }) => level === 'warning')
    .map(({ text }) => text)

describe('doctor, for the rules of the configuration,', () => {
  it('describes each rule in a sentence', () => {
    const texts = found(
      ...DEFAULT_ALLOW_RULES,
      {
        namespaces: ['shop'],
        sources: ['/srv/data', '/srv/x/*'],
        fsTypes: ['ext4'],
        readOnly: true,
        ownership: ['none'],
      },
      { namespaces: ['a', 'b'], fsTypes: ['tmpfs'], groupAccess: ['keep'], fsGroups: ['1-9'], mountOptions: [] },
      { namespaces: ['a'], sources: ['nfs:/a/{namespace}/*'], fsTypes: ['nfs'], idmapFrom: ['5'], singleNode: true },
    ).map(({ text }) => text)
    expect(texts).toEqual([
      'rule 1: pods of every namespace may have what lies below /var/lib/modekeep/volumes/<their namespace> as bind, and tmpfs, for writing too; ownership in any way',
      'rule 2: pods of shop may have /srv/data, what lies below /srv/x as ext4, for reading alone; ownership none',
      'rule 3: pods of a, b may have tmpfs, for writing too; ownership in any way; a walk gives keep; fsGroup 1-9; mountOptions none alone',
      'rule 4: pods of a may have what lies below nfs:/a/<their namespace> as nfs, for writing too; ownership in any way; idmapFrom 5; walks of what servers have, which no other node may mount',
    ])
  })

  it.each(['allow', 'map'])('warns of systemGroups in a rule of "%s"', (key) => {
    const texts = [...checkSystemGroups([{}, { systemGroups: true }, { systemGroups: false }], key, '/c.json')]
    expect(texts).toEqual([
      {
        level: 'warning',
        text: expect.stringMatching(`^rule 2 of "${key}" has systemGroups: its pods can make executables`),
        remedy: expect.stringContaining(`"${key}" in /c.json`),
      },
    ])
  })

  it('reports a fault for an unknown volume type', () => {
    const faults = found({ ...DEFAULT_ALLOW_RULES[0], fsTypes: ['ext4', 'ext5', 'fuse.sshfs', 'bind'] }).filter(
      ({ level }) => level === 'fault',
    )
    expect(faults).toEqual([
      expect.objectContaining({ text: 'rule 1 has fsTypes "ext5", which modekeep cannot mount' }),
    ])
  })

  it.each<[string, AllowRule, string, string]>([
    [
      'a word that no volume type accepts',
      { fsTypes: ['ext4'], mountOptions: ['noatime', 'noatimee'] },
      'ext4 does not take',
      'one of ro, rw,',
    ],
    [
      'an option of no volume type in the list',
      { fsTypes: ['ext4', 'xfs'], mountOptions: ['nonsense=1'] },
      'none of ext4, xfs takes',
      'nouuid',
    ],
    [
      'an invalid value of its option',
      { fsTypes: ['nfs'], mountOptions: ['sec=krb6'] },
      'nfs does not take',
      'it like sec or sec=sys or',
    ],
    [
      'a value of an option without values',
      { fsTypes: ['ext4'], mountOptions: ['noatime=1'] },
      'ext4 does not take',
      'it like noatime in "allow" of /c.json',
    ],
    ['an option of no default volume type', { mountOptions: ['discard'] }, 'none of bind, tmpfs takes', 'size'],
    [
      'an option of a program with known options',
      { fsTypes: ['fuse.sshfs'], mountOptions: ['ssh_command=x'] },
      'fuse.sshfs does not take',
      'reconnect',
    ],
  ])('reports a fault for a mount option that allows nothing: %s', (_what, rule, not, wayOut) => {
    const faults = found({ ...rule, sources: OWN }).filter(({ level }) => level === 'fault')
    const option = rule.mountOptions?.at(-1)
    expect(faults).toEqual([
      {
        level: 'fault',
        text: `rule 1 has mountOptions "${option}", which ${not}`,
        remedy: expect.stringContaining(wayOut),
      },
    ])
  })

  it.each<[string, AllowRule]>([
    [
      'names, values and flags',
      { fsTypes: ['nfs'], mountOptions: ['noatime', 'suid', 'vers', 'vers=4.2', 'sec=krb5p'] },
    ],
    ['an option of one of its volume types', { fsTypes: ['ext4', 'xfs'], mountOptions: ['nouuid', 'data=journal'] }],
    [
      'options of a program that modekeep does not know',
      { fsTypes: ['ext4', 'fuse.rclone'], mountOptions: ['vfs-cache-mode=full'] },
    ],
    ['an unknown volume type, which is a fault itself', { fsTypes: ['ext5'], mountOptions: ['x'] }],
  ])('reports nothing for valid mount options of a rule: %s', (_what, rule) => {
    const faults = found({ ...rule, sources: OWN }).filter(({ text }) => text.includes('has mountOptions'))
    expect(faults).toEqual([])
  })

  it('reports no warning for the default rules, and one warning for an empty list of rules', () => {
    expect(warnings(...DEFAULT_ALLOW_RULES)).toEqual([])
    expect(warnings()).toEqual(['no rule allows anything: every mount is refused'])
  })

  it.each<[string, AllowRule[], string[]]>([
    [
      'all namespaces in one directory',
      [{ sources: ['/srv/*'] }],
      ["rule 1 lets one namespace into another's: /srv/*"],
    ],
    ['any source', [{}], ["rule 1 lets one namespace into another's: /*"]],
    [
      'two named namespaces',
      [{ namespaces: ['a', 'b'], sources: ['/s'] }],
      ['rule 1 lets namespace "a" into that of "b": /s'],
    ],
    ['a glob', [{ namespaces: ['a-*'], sources: ['/s'] }], ['rule 1 lets namespace "a-x" into that of "a-y": /s']],
    ['a single namespace', [{ namespaces: ['a'], sources: ['/srv/*'] }], []],
    ['each namespace in its own directory', [{ sources: ['/srv/{namespace}/*', 'nfs:/x/{namespace}'] }], []],
    [
      'each namespace in its own directory, by two rules',
      [{ sources: ['/v/{namespace}/*'] }, { sources: ['/w/{namespace}/*'] }],
      [],
    ],
    ['a rule that is read-only', [{ sources: ['/srv/*'], readOnly: true }], []],
    ['tmpfs, which is new for each pod', [{ fsTypes: ['tmpfs'] }], []],
    [
      'a directory above the others',
      [{ namespaces: ['ops'], sources: ['/v/*'] }, { sources: ['/v/{namespace}/*'] }],
      [expect.stringMatching(/^rules 1 and 2 let .*: \/v\/\*$/)],
    ],
    [
      'a namespace that reads what another writes',
      [
        { namespaces: ['a'], sources: ['/v/a/*'] },
        { namespaces: ['b'], sources: ['/v/*'], readOnly: true },
      ],
      ['rules 2 and 1 let namespace "b" into that of "a": /v/*'],
    ],
  ])('warns of a rule that gives a namespace access to another: %s', (_what, rules, expected) => {
    expect(warnings(...rules)).toEqual(expected)
  })

  it.each<[string, AllowRule, AllowRule, RegExp | undefined]>([
    ['the same', { namespaces: ['a'] }, { namespaces: ['a'] }, /^rule 2 has no effect/],
    ['narrower', { namespaces: ['a*'], sources: OWN }, { namespaces: ['ab'], sources: OWN }, /^rule 2 has no effect/],
    [
      'wider',
      { namespaces: ['ab'], sources: OWN },
      { namespaces: ['a*'], sources: OWN },
      /^rule 2 is wider than rule 1/,
    ],
    [
      'wider than a read-only one',
      { namespaces: ['a'], sources: ['/s/x/*'], readOnly: true },
      { namespaces: ['a'], sources: ['/s/*'] },
      /^rule 2 is wider than rule 1/,
    ],
    ['with other options', { namespaces: ['a'] }, { namespaces: ['a'], mountOptions: ['suid'] }, undefined],
    ['of another volume type', { namespaces: ['a'] }, { namespaces: ['a'], fsTypes: ['ext4'] }, undefined],
    ['with an additional group', { namespaces: ['a'] }, { namespaces: ['a'], idmapFrom: ['5'] }, /^rule 2 is wider/],
    [
      'for another directory',
      { namespaces: ['a'], sources: ['/s'] },
      { namespaces: ['a'], sources: ['/t'] },
      undefined,
    ],
  ])('warns of a later rule that is %s', (_what, one, other, expected) => {
    const said = warnings(one, other)
    expect(said).toHaveLength(expected === undefined ? 0 : 1)
    if (expected !== undefined) expect(said[0]).toMatch(expected)
  })
})
