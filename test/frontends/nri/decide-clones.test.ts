import { describe, expect, it, vi } from 'vitest'
import { parseConfig } from '../../../src/config/config.ts'
import { renderFault } from '../../../src/errors/fault.ts'
import { catchRefusalMessage, Refusal } from '../../../src/errors/refusal.ts'
import { decideContainerClones, mayContainerNeedClone } from '../../../src/frontends/nri/decide-clones.ts'
import { containerOf, decided, decisionOn, KUBELET, mountOf, POD, podOf, SOURCES, UID, USUAL, VOLUMES } from './pods.ts'

const groups = (order: ReturnType<typeof decided>) =>
  Object.fromEntries((order?.clones ?? []).map(({ destination, group }) => [destination, group]))

const faults = (decide: () => unknown): readonly string[] => {
  try {
    decide()
  } catch (error) {
    if (error instanceof Refusal) return error.faults.map((fault) => renderFault(fault))
    throw error
  }
  return expect.unreachable()
}

describe('the clone decision for a container maps', () => {
  const mounts = [
    mountOf('/scratch', SOURCES.scratch),
    mountOf('/data', SOURCES.claim, ['rbind', 'rprivate', 'ro']),
    mountOf('/disk', SOURCES.disk),
    mountOf('/config', SOURCES.config),
    mountOf('/own', SOURCES.own),
    mountOf('/own-claim', SOURCES.ownClaim),
    mountOf('/host', '/srv/shared'),
  ]

  it('no volume without the annotation', () => {
    expect(decided(undefined, mounts)).toBeUndefined()
  })

  it("all volumes of the pod except kubelet's and modekeep's own, if the annotation is a group", () => {
    const order = decided('2000', mounts)
    expect(groups(order)).toEqual({ '/scratch': 2000, '/data': 2000, '/disk': 2000 })
    expect(order).toMatchObject({
      container: 'c0ffee',
      containerName: 'app',
      sandbox: 'sandbox',
      pod: { namespace: 'shop', name: 'web-0', uid: UID },
      hasUserNamespace: false,
      kubeletDir: '/var/lib/kubelet',
      isOptional: false,
    })
    expect(order?.clones[1]).toEqual({
      volume: 'pvc-1',
      destination: '/data',
      source: SOURCES.claim,
      options: ['rbind', 'rprivate', 'ro'],
      group: 2000,
      requestedBy: 'annotation modekeep/group is "2000"',
      isOwn: false,
      fsTypes: ['ext4', 'xfs', 'btrfs'],
      freshGroup: 'recorded',
    })
  })

  it("named volumes, by kubelet's name or the path in the container, and others to the default group", () => {
    expect(groups(decided('scratch=2000, pvc-1=3000', mounts))).toEqual({ '/scratch': 2000, '/data': 3000 })
    expect(groups(decided('/data=3000,1000', mounts))).toEqual({ '/scratch': 1000, '/data': 3000, '/disk': 1000 })
    expect(groups(decided('/elsewhere=3000', mounts))).toEqual({})
  })

  it('an emptyDir with the set-gid bit on its root, and other volumes so only by the annotation modekeep/set-gid', () => {
    const bits = (annotations: Record<string, string>) =>
      decided('2000', mounts, { annotations })?.clones.map(({ destination, setGid }) => [destination, setGid])
    const scratch = ['/scratch', 'emptyDir']
    expect(bits({})).toEqual([scratch, ['/data', undefined], ['/disk', undefined]])
    expect(bits({ 'modekeep/set-gid': 'root' })).toEqual([scratch, ['/data', 'requested'], ['/disk', 'requested']])
    expect(() => bits({ 'modekeep/set-gid': 'true' })).toThrow('annotation modekeep/set-gid is "true": write "root"')
  })

  it('every volume but an emptyDir with a walk by the annotation modekeep/group-access', () => {
    const mounts = [
      mountOf('/scratch', SOURCES.scratch),
      mountOf('/data', SOURCES.claim),
      mountOf('/disk', SOURCES.disk),
    ]
    const accessOf = (annotations: Record<string, string>) =>
      decided('2000', mounts, { annotations })?.clones.flatMap(({ destination, groupAccess }) =>
        groupAccess === 'grant' ? [destination] : [],
      )
    expect(accessOf({})).toEqual([])
    expect(accessOf({ 'modekeep/group-access': 'grant' })).toEqual(['/data', '/disk'])
    expect(() => accessOf({ 'modekeep/group-access': 'keep' })).toThrow(
      'annotation modekeep/group-access is "keep": write "grant"',
    )
  })

  it('with the user of its process, where the runtime reports it', () => {
    const user = { uid: 1000, gid: 2000, additionalGids: [] }
    expect(decided('2000', [mountOf('/data', SOURCES.claim)], { user })).toMatchObject({ processUid: 1000 })
    expect(decided('2000', [mountOf('/data', SOURCES.claim)])).not.toHaveProperty('processUid')
  })

  it('a path with or without a trailing slash, in the annotation and in the pod', () => {
    expect(groups(decided('/data/=3000', mounts))).toEqual({ '/data': 3000 })
    expect(groups(decided('/data=3000', [mountOf('/data/', SOURCES.claim)]))).toEqual({ '/data/': 3000 })
    expect(() => decided('/data=2000,/data/=3000', mounts)).toThrow('names volume "/data" twice')
  })

  it('the other volumes and warns if the container has no volume at an annotated path', () => {
    expect(decisionOn('/data=3000', mounts).warning).toBeUndefined()
    expect(decisionOn('scratch=3000', mounts).warning).toBeUndefined()
    const { request, warning } = decisionOn('/dat=3000,/data=2000,/srv/none=1', mounts)
    expect(groups(request)).toEqual({ '/data': 2000 })
    expect(warning).toBe(
      'annotation modekeep/group is "/dat=3000,/data=2000,/srv/none=1", and container "app" has no volume at "/dat", "/srv/none": ' +
        'nothing is mapped there; where no other container of the pod has one there either, correct the path',
    )
    const nothing = decisionOn('/dat=3000', mounts)
    expect([nothing.request, nothing.warning]).toEqual([undefined, expect.stringContaining('/dat')])
  })

  it("a volume whose source has the real path of kubelet's directory", () => {
    const directory = `/disks/kubelet/pods/${UID}`
    const real = (source: string) => source.replace(POD, directory)
    const told = mounts.map((mount) => ({ ...mount, source: real(mount.source) }))
    const volumes = { ...VOLUMES, directory }
    expect(decided('2000', told, { volumes })).toEqual(decided('2000', mounts))
    expect(decided('2000', mounts, { volumes })).toEqual(decided('2000', mounts))
    expect(decided(undefined, told, { volumes, isInUserNamespace: true })).toEqual(
      decided(undefined, mounts, { isInUserNamespace: true }),
    )
  })

  it('each subPath of a volume', () => {
    const parts = [
      mountOf('/a', `${SOURCES.scratch.replace('/volumes/kubernetes.io~empty-dir/', '/volume-subpaths/')}/app/0`),
      mountOf(
        '/b',
        `${SOURCES.claim.replace('/volumes/kubernetes.io~csi/pvc-1/mount', '/volume-subpaths/pvc-1/app/1')}`,
      ),
      mountOf('/c', `${SOURCES.config.replace('/volumes/kubernetes.io~configmap/', '/volume-subpaths/')}/app/2`),
      mountOf('/d', `${SOURCES.own.replace('/volumes/modekeep~fs/', '/volume-subpaths/')}/app/3`),
    ]
    expect(groups(decided('2000', parts))).toEqual({ '/a': 2000, '/b': 2000 })
  })

  it("modekeep's own volume in a user namespace, with its own group", () => {
    const order = decided(undefined, mounts, { isInUserNamespace: true })
    expect(order?.hasUserNamespace).toBe(true)
    expect(order?.clones[0]?.requestedBy).toBe('the pod has a user namespace of its own')
    expect(order?.clones.map(({ destination, group, isOwn }) => [destination, group, isOwn])).toEqual([
      ['/own', undefined, true],
      ['/own-claim', undefined, true],
    ])
    expect(groups(decided('2000', mounts, { isInUserNamespace: true }))).toMatchObject({
      '/data': 2000,
      '/own': undefined,
    })
  })

  it('a hostPath that the annotation names by its path, if a rule allows it, and never with the group on disk', () => {
    const map = [{}, { volumes: ['hostPath'], sources: ['/srv/*'] }]
    const named = decided('/srv/shared=2000,2000', mounts, { map })?.clones ?? []
    expect(named.map(({ destination, freshGroup }) => [destination, freshGroup])).toEqual([
      ['/scratch', 'unrecorded'],
      ['/data', 'recorded'],
      ['/disk', 'recorded'],
      ['/host', undefined],
    ])
    expect(groups(decided('/host=2000', mounts, { map }))).toEqual({ '/host': 2000 })
  })

  it.each(['/host=2000', '/=2000'])('a hostPath "/" that annotation %s names is refused under any rule', (value) => {
    const root = [mountOf('/host', '/')]
    const map = [{}, { volumes: ['hostPath'], sources: ['/**'] }]
    expect(() => decided(value, root, { map })).toThrow("shows the node's root directory")
    expect(decided(undefined, root, { map })).toBeUndefined()
    expect(decided('2000', root, { map })).toBeUndefined()
  })

  it('a volume on the file system types of all rules that allow it', () => {
    const map = [
      { volumes: ['csi'], fsTypes: ['ext4'] },
      { groups: ['2000-2999'], fsTypes: ['ext4', 'overlay'] },
      { groups: ['1'] },
    ]
    expect(decided('pvc-1=2000', mounts, { map })?.clones[0]?.fsTypes).toEqual(['ext4', 'overlay'])
  })

  it('a volume optionally, if the annotation modekeep/group-optional is "true"', () => {
    expect(decided('2000', mounts, { annotations: { 'modekeep/group-optional': 'true' } })?.isOptional).toBe(true)
  })

  it('a CSI volume next to an NFS volume that no rule allows, if the group is optional', () => {
    const both = [mountOf('/data', SOURCES.claim), mountOf('/share', SOURCES.nfs)]
    expect(() => decided('2000', both)).toThrow('may not have the kubernetes.io/nfs volume "share"')
    const { clones = [] } = decided('2000', both, { annotations: { 'modekeep/group-optional': 'true' } }) ?? {}
    expect(clones.map(({ destination, refusal }) => [destination, refusal?.code])).toEqual([
      ['/data', undefined],
      ['/share', 'map-not-allowed'],
    ])
  })
})

describe('the clone decision for a container refuses', () => {
  const [scratch] = [mountOf('/scratch', SOURCES.scratch)]

  it.each([
    ['', '""'],
    ['x', '"x"'],
    ['-1', '"-1"'],
    ['4294967295', '"4294967295"'],
    ['02000', '"02000"'],
    ['data=', '"data="'],
    ['=2000', '"=2000"'],
    ['2000,', '""'],
  ])('the annotation %j', (text, shown) => {
    const [fault] = faults(() => decided(text, [scratch]))
    expect(fault).toBe(
      `annotation modekeep/group is ${JSON.stringify(text)}: ${shown} names no group from 0 to 4294967294: write "2000" for all volumes of the pod, or "data=2000,logs=3000"`,
    )
  })

  it('an annotation with two groups for one volume, or for all volumes', () => {
    expect(faults(() => decided('2000,3000', [scratch]))).toHaveLength(1)
    expect(faults(() => decided('scratch=2000,scratch=3000', [scratch]))[0]).toContain('names volume "scratch" twice')
  })

  it('an annotation modekeep/group-optional that is neither "true" nor "false"', () => {
    const annotations = { 'modekeep/group-optional': 'yes' }
    expect(decisionOn(undefined, [mountOf('/data', SOURCES.claim)], { annotations, isInUserNamespace: true })).toEqual(
      {},
    )
    expect(() => decided('2000', [scratch], { annotations: { 'modekeep/group-optional': 'yes' } })).toThrow(
      'annotation modekeep/group-optional is "yes": write "true" or "false"',
    )
  })

  it("an unknown volume name, and lists the pod's volumes", () => {
    expect(() => decided('scratsch=2000', [scratch])).toThrow(
      'the pod has no volume "scratsch" that kubelet knows by this name: write "scratch" or "pvc-1" or "disk" or "share" ' +
        'or the path where the container has it, "/scratch" (a claim',
    )
  })

  it("kubelet's and modekeep's own volumes, if the annotation names them", () => {
    expect(() => decided('config=2000', [mountOf('/config', SOURCES.config)])).toThrow('kubelet writes the files')
    expect(() => decided('own=2000', [mountOf('/own', SOURCES.own)])).toThrow(
      'volume "own" (at "/own") is modekeep\'s own: set the pod\'s fsGroup to 2000 and the volume\'s option ownership instead',
    )
    expect(() => decided('own-pv=2000', [mountOf('/own', SOURCES.ownClaim)])).toThrow("is modekeep's own")
  })

  it('a namespace, kind, path or group that no rule of the node allows', () => {
    const sentence = (map: object[], annotation = '2000', mount = scratch) =>
      faults(() => decided(annotation, [mount], { map }))[0]
    expect(sentence([])).toBe(
      'annotation modekeep/group is "2000", but namespace "shop" may not have the emptyDir volume "scratch" shown to group 2000 on this node: ' +
        'it has no rule; its administrator can add a rule to "map" of the node\'s modekeep configuration',
    )
    expect(sentence([{ namespaces: ['team-*'] }])).toContain('rule 1 is not for this namespace')
    expect(sentence([{ groups: ['3000'] }])).toContain('rule 1 is not for group 2000')
    expect(sentence([{}], '2000', mountOf('/nfs', SOURCES.nfs))).toContain(
      'rule 1 is not for kubernetes.io/nfs volumes',
    )
    const host = mountOf('/host', '/srv/shared')
    expect(sentence([{}], '/host=2000', host)).toContain('rule 1 is not for hostPath volumes')
    expect(sentence([{ volumes: ['hostPath'] }], '/host=2000', host)).toContain('rule 1 is not for this path')
  })

  it("a hostPath without rules in the node's configuration, and shows rules that allow it", () => {
    const host = mountOf('/host', '/srv/shared')
    const { config, faults: none } = parseConfig('{}', '/etc/modekeep/config.json')
    const [fault = ''] = faults(() => decided('/host=2000', [host], { map: config.map }))
    expect(none).toEqual([])
    expect(fault).toBe(
      'annotation modekeep/group is "/host=2000", but namespace "shop" may not have the hostPath volume "/srv/shared" shown to group 2000 on this node: ' +
        'without "map" in the node\'s modekeep configuration only emptyDir, csi, local volumes may be; its administrator can write ' +
        '"map": [{}, {"volumes": ["hostPath"], "sources": ["/srv/shared"]}] there, where {} keeps what is allowed without it',
    )
    const written = parseConfig(`{${/"map": \[.*\]/.exec(fault)?.[0]}}`, '/etc/modekeep/config.json')
    expect(written.faults).toEqual([])
    const { map } = written.config
    expect(groups(decided('2000,/host=2000', [host, scratch], { map }))).toEqual({ '/host': 2000, '/scratch': 2000 })
    const nfs = mountOf('/nfs', SOURCES.nfs)
    const [other = ''] = faults(() => decided('2000', [nfs]))
    const rules = parseConfig(`{${/"map": \[.*\]/.exec(other)?.[0]}}`, '/etc/modekeep/config.json')
    expect(groups(decided('2000', [nfs, scratch], { map: rules.config.map }))).toEqual({
      '/nfs': 2000,
      '/scratch': 2000,
    })
  })

  it("another pod's directory, and a directory of kubelet's that is not --kubelet-dir", () => {
    const foreign = mountOf('/x', SOURCES.scratch.replace(UID, 'another'))
    expect(() => decided('/x=2000', [foreign])).toThrow('may not have the hostPath volume')
  })

  it('every volume outside --kubelet-dir, if the annotation names any volume', () => {
    const moved = (source: string) => mountOf('/x', source.replace('/var/lib/kubelet', '/data/kubelet'))
    const sentence = (source: string, text: string) => faults(() => decided(text, [scratch, moved(source)]))
    for (const source of [SOURCES.scratch, SOURCES.claim, SOURCES.config, SOURCES.own]) {
      for (const text of ['2000', '/scratch=2000', 'scratch=2000', '/x=2000']) {
        expect(sentence(source, text)[0]).toMatch(
          /^annotation .*, but volume "[a-z0-9-]+" \(at "\/x"\) lies at "\/data\/kubelet\/.* in another directory of kubelet's than "\/var\/lib\/kubelet": give kubelet's --root-dir as --kubelet-dir to "modekeep nri"$/,
        )
      }
    }
    expect(sentence(`${POD}/volume-subpaths/pvc-1/app/0`, '/scratch=2000')[0]).toContain('in another directory')
    const unasked = (source: string) => decided(undefined, [moved(source)], { isInUserNamespace: true })
    for (const own of [SOURCES.own, SOURCES.ownClaim]) {
      expect(() => unasked(own)).toThrow('the pod has a user namespace of its own, but volume "own')
    }
    expect(unasked(SOURCES.claim)).toBeUndefined()
    // A hostPath with the pod's uid in its path gains nothing by that.
    const forged = mountOf('/x', `/srv${POD}/volumes/kubernetes.io~csi/pvc-1/mount`)
    expect(() => decided('/x=2000', [forged], { map: [{}, { volumes: ['hostPath'], sources: ['/srv/*'] }] })).toThrow(
      'in another directory',
    )
  })

  it('a volume whose driver is unknown', () => {
    const volumes = { ...VOLUMES, drivers: new Map() }
    const claim = mountOf('/data', SOURCES.claim)
    for (const text of ['2000', '/data=2000', 'pvc-1=2000']) {
      expect(() => decided(text, [claim], { volumes, map: [{}] })).toThrow(
        'but volume "pvc-1" (at "/data") cannot be told whose volume it is, as kubelet\'s note of its driver (vol_data.json) cannot be read: ' +
          'name the volumes that need the group, without this one',
      )
    }
    expect(groups(decided('scratch=2000', [scratch, claim], { volumes }))).toEqual({ '/scratch': 2000 })
    const part = mountOf('/part', `${POD}/volume-subpaths/host/app/0`)
    expect(() => decided('2000', [part], { map: [{ volumes: ['unknown'] }] })).toThrow(
      'it is a part (subPath) of a hostPath',
    )
  })

  it('mountPropagation, which a clone does not support', () => {
    expect(() => decided('2000', [mountOf('/s', SOURCES.scratch, ['rbind', 'rslave'])])).toThrow(
      'mountPropagation (rslave)',
    )
  })

  it('processes that are not in the group, if the runtime reports their groups', () => {
    const user = { uid: 1000, gid: 1000, additionalGids: [3000] }
    expect(() => decided('2000', [scratch], { user })).toThrow(
      'the processes of container "app" are not in group 2000: write it in supplementalGroups',
    )
    expect(groups(decided('3000', [scratch], { user }))).toEqual({ '/scratch': 3000 })
    expect(decided('3000', [scratch], { user })?.isMember).toBe(true)
    expect(decided('3000', [scratch])?.isMember).toBeUndefined()
    expect(groups(decided('1000', [scratch], { user }))).toEqual({ '/scratch': 1000 })
  })

  it("processes that are in none of the pod's groups, except runAsGroup, which the container may override", () => {
    const podGroups = { certain: [2000], possible: [1000] }
    expect(() => decided('3000', [scratch], { podGroups })).toThrow('are not in group 3000')
    expect(decided('2000', [scratch], { podGroups })?.isMember).toBe(true)
    const untold = decided('1000', [scratch], { podGroups })
    expect(groups(untold)).toEqual({ '/scratch': 1000 })
    expect(untold?.isMember).toBeUndefined()
    expect(
      decided('2000,/scratch=1000', [scratch, mountOf('/d', SOURCES.disk)], { podGroups })?.isMember,
    ).toBeUndefined()
  })

  it('more than 200 mounts of one container', () => {
    const mounts = (count: number) =>
      Array.from({ length: count }, (_, at) => mountOf(`/scratch/${at}`, SOURCES.scratch))
    expect(decided('2000', mounts(200))?.clones).toHaveLength(200)
    expect(() => decided('2000', mounts(201))).toThrow(
      'annotation modekeep/group is "2000", but 201 volumeMounts of container "app" would have to be mapped, and more than 200 of one ' +
        'container are not: mount fewer, or name those that need it in the annotation',
    )
    expect(groups(decided('/scratch/7=2000', mounts(1500)))).toEqual({ '/scratch/7': 2000 })
    const own = Array.from({ length: 201 }, (_, at) => mountOf(`/own/${at}`, SOURCES.own))
    expect(() => decided(undefined, own, { isInUserNamespace: true })).toThrow('but 201 volumeMounts')
  })

  it('any annotation of 256 KiB with a short message, within little time', () => {
    const mounts = Array.from({ length: 1500 }, (_, at) => mountOf(`/${at}`, SOURCES.scratch))
    const controls = '\u0001'.repeat(250 * 1024)
    const worst = [
      `2000,/${controls}=2000`,
      `2000,${controls}=2000`,
      ','.repeat(256 * 1024),
      `${'\u0001,'.repeat(100)}${controls}`,
      Array.from({ length: 200 }, (_, at) => `${at}${'\u0001'.repeat(1000)}=${at}`).join(),
    ]
    const escaped: number[] = []
    const stringify = vi.spyOn(JSON, 'stringify')
    const messages = worst.map((text) => catchRefusalMessage(() => void decided(text, mounts)) ?? '')
    escaped.push(...stringify.mock.calls.map(([text]) => String(text).length))
    stringify.mockRestore()
    expect(messages.map((message) => message.length).filter((length) => length > 4100 || length === 0)).toEqual([])
    expect(messages[0]).toContain('is no name of a volume, and a path has at most 4096 characters: write "2000"')
    expect(escaped.filter((length) => length > 120)).toEqual([])
    expect(escaped.length).toBeLessThan(1000)
  })

  it('a container with all faults in one message', () => {
    const mounts = [mountOf('/config', SOURCES.config), mountOf('/own', SOURCES.own)]
    expect(faults(() => decided('config=1,own=2,nobody=3', mounts))).toHaveLength(3)
  })

  it("a pod uid that would lead out of kubelet's directory", () => {
    const pod = { ...podOf({ 'modekeep/group': '2000' }), uid: '../x' }
    const node = { kubeletDir: KUBELET, map: [{}] }
    expect(() => decideContainerClones(pod, containerOf([]), VOLUMES, node)).toThrow("is not the form of a pod's uid")
  })
})

describe('a clone may be necessary', () => {
  it('for an annotated container, or for one with a user namespace and a possible volume of modekeep', () => {
    const plain = containerOf([...USUAL, mountOf('/data', SOURCES.claim)])
    expect(mayContainerNeedClone(podOf(), plain)).toBe(false)
    expect(mayContainerNeedClone(podOf({ 'modekeep/group': '' }), plain)).toBe(true)
    expect(mayContainerNeedClone(podOf(), containerOf([...USUAL], { isInUserNamespace: true }))).toBe(false)
    expect(
      mayContainerNeedClone(podOf(), containerOf([mountOf('/own', SOURCES.own)], { isInUserNamespace: true })),
    ).toBe(true)
  })
})
