import { describe, expect, it } from 'vitest'
import { checkRequestAgainstRules, type RuleCheckRequest, type VolumeKindTraits } from '../../src/config/allow.ts'
import { type AllowRule, DEFAULT_ALLOW_RULES } from '../../src/config/rule.ts'
import { parseSource } from '../../src/config/source.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { FS_GROUP, NO_FS_GROUP } from '../helpers/mount-records.ts'
import { rendered } from '../helpers/rendered.ts'

const KIND: VolumeKindTraits = {
  walksServer: false,
  hasNoSource: false,
  naming: (option) => (option.startsWith('sec=krb') ? 'value' : option === 'suid' ? 'name' : 'none'),
}

type Asked = Partial<Omit<RuleCheckRequest, 'source'>> & { source?: string }

function decide(rules: readonly AllowRule[], { source = '/srv/a', ...over }: Asked, traits = KIND) {
  const kind = { ...traits, hasNoSource: over.fsType === 'tmpfs' }
  const wish: RuleCheckRequest = {
    namespace: 'shop',
    source: parseSource(source),
    fsType: 'bind',
    mountOptions: [],
    readOnly: false,
    ownership: 'none',
    fsGroup: NO_FS_GROUP,
    ...over,
  }
  return checkRequestAgainstRules(rules, wish, kind)
}

const isAllowed = (rule: AllowRule, asked: Asked) => 'rule' in decide([rule], asked)

describe('a rule', () => {
  it.each<[string, AllowRule, Asked, boolean]>([
    ['without keys: any source', {}, { source: '/etc' }, true],
    ['without keys: a tmpfs', {}, { fsType: 'tmpfs', source: '' }, true],
    ['without keys: no other kind', {}, { fsType: 'ext4' }, false],
    ['without keys: no foreign group', {}, { idmapFrom: 0, ownership: 'idmap' }, false],
    ['without keys: no option that must be named', {}, { mountOptions: ['suid'] }, false],
    ['without keys: ordinary options', {}, { mountOptions: ['noatime'] }, true],
    ['without keys: a pod without a namespace', {}, { namespace: undefined }, true],
    ['namespaces: its own', { namespaces: ['shop'] }, {}, true],
    ['namespaces: another', { namespaces: ['shop'] }, { namespace: 'shop2' }, false],
    ['namespaces: a glob', { namespaces: ['x', 'sh*'] }, {}, true],
    ['namespaces: a glob matches the complete name', { namespaces: ['ho*'] }, {}, false],
    [
      "namespaces: a dot matches only a dot, and the pod's namespace is no pattern",
      { namespaces: ['sho.'] },
      {},
      false,
    ],
    ['namespaces: none', { namespaces: [] }, {}, false],
    [
      'namespaces: "*" does not match a pod without a namespace',
      { namespaces: ['*'] },
      { namespace: undefined },
      false,
    ],
    ['namespaces: an empty namespace counts as none', { namespaces: ['*'] }, { namespace: '' }, false],
    ['submounts: not included without the key', {}, { submounts: 'include' }, false],
    ['submounts: include', { submounts: 'include' }, { submounts: 'include' }, true],
    ['submounts: hidden without the key', {}, { submounts: 'hide' }, true],
    ['volumes: one written in the pod', { volumes: ['inline'] }, { lifecycle: 'inline' }, true],
    ['volumes: another', { volumes: ['persistent'] }, { lifecycle: 'inline' }, false],
    ['volumes: a FlexVolume, whose lifecycle is unknown', { volumes: ['inline', 'persistent'] }, {}, false],
    ['volumes: any without the key', {}, { lifecycle: 'inline' }, true],
    ['sources: have no effect for a tmpfs', { sources: [] }, { fsType: 'tmpfs', source: 'tmpfs' }, true],
    ['sources: none', { sources: [] }, {}, false],
    ['ownership', { ownership: ['walk', 'idmap'] }, { ownership: 'auto' }, false],
    ['ownership: listed', { ownership: ['auto'] }, { ownership: 'auto' }, true],
    ['groupAccess', { groupAccess: ['keep'] }, { ownership: 'walk', fsGroup: { ...FS_GROUP, access: 'grant' } }, false],
    ['groupAccess: has no effect without a walk', { groupAccess: ['grant'] }, {}, true],
    ['fsGroups: in a range', { fsGroups: ['7', '2000-2999'] }, { fsGroup: { ...FS_GROUP, groupId: 2999 } }, true],
    [
      'fsGroups: outside the range',
      { fsGroups: ['7', '2000-2999'] },
      { fsGroup: { ...FS_GROUP, groupId: 3000 } },
      false,
    ],
    ['fsGroups: the root group is one', { fsGroups: ['1-9'] }, { fsGroup: { ...FS_GROUP, groupId: 0 } }, false],
    ['fsGroups: a pod without a group', { fsGroups: [] }, {}, true],
    ['idmapFrom: listed', { idmapFrom: ['100'] }, { idmapFrom: 100, ownership: 'idmap' }, true],
    ['idmapFrom: another', { idmapFrom: ['100'] }, { idmapFrom: 10, ownership: 'idmap' }, false],
    ['mountOptions: by name', { mountOptions: ['size', 'suid'] }, { mountOptions: ['size=5', 'suid'] }, true],
    ['mountOptions: only these', { mountOptions: ['size'] }, { mountOptions: ['noatime'] }, false],
    ['mountOptions: one value', { mountOptions: ['sec=krb5'] }, { mountOptions: ['sec=krb5'] }, true],
    ['mountOptions: not by its name', { mountOptions: ['sec'] }, { mountOptions: ['sec=krb5'] }, false],
    ['mountOptions: another value', { mountOptions: ['sec=krb5'] }, { mountOptions: ['sec=krb5p'] }, false],
  ])('an allow rule accepts or refuses a request: %s', (_what, rule, asked, expected) => {
    expect(isAllowed(rule, asked)).toBe(expected)
  })

  it.each<[string, string, boolean, string?]>([
    ['/srv/*', '/srv/a', true],
    ['/srv/*', '/srv/a/b', true],
    ['/srv/*', '/srv', false],
    ['/srv/*', '/srva/b', false],
    ['/srv', '/srv', true],
    ['/srv', '/srv/a', false],
    ['/*', '/etc', true],
    ['/*', 'nfs:/etc', false],
    ['/*', '//server/share', false],
    ['/v/{namespace}/*', '/v/shop/a', true],
    ['/v/{namespace}/*', '/v/shop', false],
    ['/v/{namespace}/*', '/v/other/a', false],
    ['/v/{namespace}/*', '/v/shop2/a', false],
    ['/v/{namespace}', '/v/shop', true],
    ['/v/{namespace}/x/{namespace}', '/v/shop/x/shop', true],
    ['nfs:/exports/*', 'nfs:/exports/a', true],
    ['nfs:/exports/*', 'NFS:/exports/a', true],
    ['nfs:/exports/*', 'nfs:/exports', false],
    ['nfs:/*', 'nfs:/', false],
    ['nfs:/', 'nfs:/', true],
    ['nfs:/*', 'nfs.evil:/a', false],
    ['nfs:/share', '//nfs/share', false],
    ['nfs:/{namespace}/*', 'nfs:/shop/a', true],
    ['//server/*', '//SERVER/share/a', true],
    ['//server/share', '//server/share', true],
    ['//server/share', '//server/share/a', false],
    ['//server/*', '//server2/share', false],
    ['bucket', 'bucket', true],
    ['bucket', 'bucket/logs', false],
    ['bucket/*', 'bucket/logs', true],
    ['remote:bucket/*', 'remote:bucket/logs', true],
    ['remote:bucket/*', 'remote:bucket2/logs', false],
    ['me@host:/home/*', 'me@host:/home/a', true],
    ['me@host:/home/*', 'you@host:/home/a', false],
    // A program may know a bucket of each spelling.
    ['Bucket:/a', 'Bucket:/a', true, 'fuse.s3fs'],
    ['bucket:/a', 'Bucket:/a', false, 'fuse.s3fs'],
    ['bucket:/*', 'Bucket:/a', false, 'fuse.s3fs'],
    ['/srv/*', '/srv/a', true, 'fuse.bindfs'],
  ])('a rule with source %s allows %s: %s', (entry, source, expected, fsType = 'bind') => {
    expect(isAllowed({ sources: [entry], fsTypes: [fsType] }, { source, fsType })).toBe(expected)
  })

  it.each(['..', '.', '', 'a/b', 'A', 'a.b', '-a', 'a-', '*', '{namespace}', 'a\0', 'a\n', 'ä', 'a'.repeat(64)])(
    "{namespace} in a rule's path never stands for the invalid namespace %j",
    (namespace) => {
      for (const source of [`/v/${namespace}/a`, '/v/a', '/a', '/v//a', '/v/{namespace}/a']) {
        expect(isAllowed({ sources: ['/v/{namespace}/*'] }, { namespace, source })).toBe(false)
      }
    },
  )
})

describe('the list of rules', () => {
  it('the first matching allow rule decides, also on read-only access', () => {
    const [one, other]: AllowRule[] = [{ sources: ['/srv/*'], readOnly: true }, {}]
    expect(decide([one ?? {}, other ?? {}], { readOnly: true })).toEqual({ rule: one })
    expect(decide([one ?? {}, other ?? {}], { source: '/etc' })).toEqual({ rule: other })
    expect(rendered(decide([one ?? {}, other ?? {}], {}))).toEqual({
      refusal:
        'namespace "shop" may not have bind "/srv/a" (writable, ownership none) on this node: ' +
        'rule 1 {"sources":["/srv/*"],"readOnly":true} is for reading: set readOnly on the volume; ' +
        'its administrator can change it in "allow" of the node\'s modekeep configuration',
    })
  })

  it('the default rule allows each namespace the paths below its own directory', () => {
    const at = (path: string) => 'rule' in decide(DEFAULT_ALLOW_RULES, { source: `/var/lib/modekeep/volumes${path}` })
    expect([at('/shop/a'), at('/shop'), at('/other/a'), at('')]).toEqual([true, false, false, false])
  })

  it('a refused request lists, for each allow rule, the keys that do not match', () => {
    const rules = [{ sources: ['/srv/*'], ownership: ['none'] }, { namespaces: ['x'] }]
    expect(rendered(decide(rules, { source: '/etc', ownership: 'walk', readOnly: true }))).toEqual({
      refusal:
        'namespace "shop" may not have bind "/etc" (read-only, ownership walk) on this node: ' +
        'rule 1 {"sources":["/srv/*"],"ownership":["none"]} does not have its source, ownership walk; ' +
        'rule 2 {"namespaces":["x"]} does not have its namespace; ' +
        'its administrator can add a rule in "allow" of the node\'s modekeep configuration',
    })
    expect(rendered(decide([], { namespace: undefined }))).toMatchObject({
      refusal: expect.stringMatching(/^a pod without a namespace may not have .*: it has no rule; /),
    })
  })

  it('the message of a refused request quotes five allow rules at most, and shortens long ones', () => {
    const rules = Array.from({ length: 100 }, () => ({ sources: Array(100).fill('/srv/volumes/*') }))
    const verdict = decide(rules, { source: `/${'x'.repeat(4000)}`, mountOptions: ['suid'] })
    expect('refusal' in verdict && renderFault(verdict.refusal)).toMatch(/and 95 more rules do not either/)
    expect('refusal' in verdict && renderFault(verdict.refusal).length).toBeLessThan(2000)
  })

  it.each<[string, Asked, AllowRule, boolean]>([
    ['a walk', { ownership: 'walk', fsGroup: { ...FS_GROUP, groupId: 7 } }, {}, false],
    ['anything without a walk', { ownership: 'auto', fsGroup: { ...FS_GROUP, groupId: 7 } }, {}, false],
    [
      'a walk on a single node',
      { ownership: 'walk', fsGroup: { ...FS_GROUP, groupId: 7 } },
      { singleNode: true },
      true,
    ],
    ['a walk without a group', { ownership: 'walk' }, {}, true],
    ['a read-only volume', { ownership: 'walk', fsGroup: { ...FS_GROUP, groupId: 7 }, readOnly: true }, {}, true],
    ['no ownership', { fsGroup: { ...FS_GROUP, groupId: 7 } }, {}, true],
  ])('allow rules for a volume on a server decide on %s: %j %j', (_what, asked, rule, expected) => {
    const verdict = decide([{ ...rule, fsTypes: ['nfs'] }], { ...asked, fsType: 'nfs' }, { ...KIND, walksServer: true })
    if (expected) expect(verdict).toHaveProperty('rule')
    else
      expect(rendered(verdict)).toMatchObject({
        refusal: expect.stringMatching(/does not say singleNode, and another node/),
      })
  })
})
