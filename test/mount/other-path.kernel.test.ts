import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import type { AllowRule } from '../../src/config/rule.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import type { Session } from '../../src/state/session.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount, scratch } from '../real-mounts/mapped-volume.ts'

const why = cannotMount('tmpfs')
const SHOP = { 'kubernetes.io/pod.namespace': 'shop' }
const TEAM = { 'kubernetes.io/pod.namespace': 'team' }
const READ_ONLY = { 'kubernetes.io/readwrite': 'ro' }

/** A node whose first rule permits all of `data`, where an administrator has bound directories of `srv`. */
function nodeWithRules(...rules: ((top: string) => AllowRule)[]) {
  const top = scratch()
  const make = (path: string) => {
    fs.mkdirSync(`${top}/${path}`, { recursive: true })
    return `${top}/${path}`
  }
  make('srv/strict/x/part')
  make('srv/other/x')
  const directory = make('kubelet/pods/own/volumes/modekeep~fs/v')
  const bind = (from: string, to: string) => execFileSync('mount', ['--bind', resolve(top, from), make(to)])
  bind('srv/strict/x', 'data/x')
  bind('srv', 'data/srv')
  const allow = [{ sources: [`${top}/data/*`] }, ...rules.map((rule) => rule(top))]
  const session: Session = {
    host: linuxHost,
    config: { ...DEFAULT_CONFIG, stateDir: make('state'), logFile: `${top}/log`, allow },
    note: () => {},
    warn: () => {},
  }
  return {
    top,
    make,
    bind,
    session,
    directory,
    async mount(source: string, more: Record<string, string> = {}, target = directory) {
      const options = JSON.stringify({ source: `${top}/${source}`, ...SHOP, ...more })
      await mountPodVolume(session, parseFlexVolumeRequest(target, options, session.config, volumeKindLookup))
    },
    unmount: () => unmountPodVolume(session, directory),
  }
}

const NAMED = 'which a rule of "allow" names'
const strictFor =
  (more: AllowRule, path = 'srv/strict/*') =>
  (top: string): AllowRule => ({ sources: [`${top}/${path}`], ...more })

describe.skipIf(why !== '')(`a source that a rule names by another path${why}`, () => {
  it.each([
    ['the directory itself', 'data/x'],
    ['a directory in it', 'data/x/part'],
    ['the directory by a bind of its parent', 'data/srv/strict/x'],
    ['the directory whose content the rule names', 'data/srv/strict'],
    ['a directory that contains it', 'data/srv'],
  ])('is refused if that rule is for another namespace: %s', async (_what, source) => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }))
    await expect(node.mount(source)).rejects.toThrow(NAMED)
    if (source.endsWith('/x')) await node.mount(source, TEAM)
  })

  it('is refused for writing if that rule is read-only, and mounted read-only', async () => {
    const node = nodeWithRules(strictFor({ readOnly: true }))
    await expect(node.mount('data/x')).rejects.toThrow('is for reading')
    await node.mount('data/x', READ_ONLY)
  })

  it.each<[string, AllowRule, Record<string, string>]>([
    ['fsTypes', { fsTypes: ['ext4'] }, {}],
    ['ownership', { ownership: ['none'] }, { ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }],
    ['mountOptions', { mountOptions: ['nodev'] }, { mountOptions: 'noatime' }],
    ['volumes', { volumes: ['persistent'] }, {}],
    ['fsGroups', { fsGroups: ['3000'] }, { 'kubernetes.io/mounterArgs.FsGroup': '2000' }],
  ])('is refused if that rule does not permit its %s', async (_key, rule, options) => {
    const node = nodeWithRules(strictFor(rule))
    await expect(node.mount('data/x', options)).rejects.toThrow(NAMED)
    await node.mount('data/srv/other/x', options)
  })

  it('may have set-gid bits and system groups only if both rules permit them', async () => {
    const node = nodeWithRules(strictFor({ setGid: false, protectedGroups: ['5000'] }))
    node.session.config.allow = node.session.config.allow.map((rule, at) =>
      at === 0 ? { ...rule, systemGroups: true, protectedGroups: ['4000'] } : rule,
    )
    await node.mount('data/x')
    const record = mountRecords.read(node.session, node.directory)
    expect(record).toMatchObject({ setGid: false, protectedGroups: ['4000', '5000'] })
    expect(record?.systemGroups).toBeUndefined()
  })

  it("is refused if it is another namespace's directory, and mounted if it is the pod's own", async () => {
    const node = nodeWithRules((top) => ({ sources: [`${top}/vols/{namespace}/*`] }))
    for (const name of ['shop', 'team']) node.make(`disk/${name}/a`)
    node.bind('disk', 'vols')
    node.bind('disk/team/a', 'data/team')
    node.bind('disk/shop/a', 'data/shop')
    node.bind('disk', 'data/disk')
    for (const source of ['data/team', 'data/disk', 'data/disk/team', 'data/disk/team/a', 'data/disk/shop']) {
      await expect(node.mount(source)).rejects.toThrow(NAMED)
    }
    await node.mount('data/shop')
  })

  it('is refused if it contains what another mount shows at a path of that rule', async () => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }, 'exports/*'))
    node.bind('srv/other/x', 'exports/x')
    await expect(node.mount('data/srv/other')).rejects.toThrow(NAMED)
    await node.mount('data/srv/strict')
  })

  it('is refused if only its subPath leads to the path of that rule, also through a mount inside the source', async () => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }))
    await expect(node.mount('data/srv', { subPath: 'strict/x' })).rejects.toThrow(NAMED)
    await node.mount('data/srv', { subPath: 'other' })
    await node.unmount()
    node.bind('srv/strict/x', 'data/plain/inner')
    await expect(node.mount('data/plain', { subPath: 'inner' })).rejects.toThrow(NAMED)
  })

  it('is mounted with a subPath if a rule permits the source by its other path', async () => {
    const node = nodeWithRules(strictFor({}, 'srv/strict/x'))
    await node.mount('data/x', { subPath: 'part' })
  })

  it('is refused if it includes a mount whose location the rule names by another path', async () => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }))
    node.session.config.allow = node.session.config.allow.map((rule, at) =>
      at === 0 ? { ...rule, submounts: 'include' } : rule,
    )
    node.bind('srv/strict/x', 'data/plain/inner')
    await expect(node.mount('data/plain', { submounts: 'include' })).rejects.toThrow(NAMED)
  })

  it('is mounted if all other paths of the source are mounts of pods', async () => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }, 'kubelet/*'))
    await node.mount('data/x')
    await node.mount('data/x', {}, node.make('kubelet/pods/second/volumes/modekeep~fs/v'))
  })

  it('is mounted if another mount covers the path of that rule', async () => {
    const node = nodeWithRules(strictFor({ namespaces: ['team'] }))
    execFileSync('mount', ['-t', 'tmpfs', 'none', `${node.top}/srv/strict`])
    await node.mount('data/x')
  })

  it('stays mounted if a rule for its other path is added later', async () => {
    const node = nodeWithRules()
    await node.mount('data/x')
    node.session.config.allow = [...node.session.config.allow, strictFor({ namespaces: ['team'] })(node.top)]
    await node.mount('data/x')
    await node.unmount()
    await expect(node.mount('data/x')).rejects.toThrow(NAMED)
  })
})
