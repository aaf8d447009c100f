import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../src/cli/commands/arguments.ts'
import { type CommandOfVerb, runVerb } from '../../src/cli/commands/index.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { refuseSystemDirectory } from '../../src/fsgroup/refused-directories.ts'
import { openNodeDirectoryVolume } from '../../src/fsgroup/volume-by-hand.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import type { Session } from '../../src/state/session.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount, scratch } from '../real-mounts/mapped-volume.ts'

const why = cannotMount('tmpfs')

/** A node whose rules allow all of `data`, where an administrator has bound other directories. */
function nodeWithBinds() {
  const top = scratch()
  const make = (path: string) => {
    fs.mkdirSync(`${top}/${path}`, { recursive: true })
    return `${top}/${path}`
  }
  const state = make('lib/state')
  const directory = make('lib/kubelet/pods/own/volumes/modekeep~fs/v')
  for (const name of ['mounts/x', 'ownership', 'volumes/shop']) make(`lib/state/${name}`)
  const logFile = `${make('logs')}/log`
  const configFile = `${make('etc/modekeep')}/config.json`
  for (const file of [logFile, configFile]) fs.writeFileSync(file, '')
  const session: Session = {
    host: linuxHost,
    config: { ...DEFAULT_CONFIG, stateDir: state, logFile, configFile, allow: [{ sources: [`${top}/data/*`] }] },
    note: () => {},
    warn: () => {},
  }
  return {
    top,
    make,
    session,
    directory,
    /** Makes `data/NAME` another path of a directory, with the mounts in it where `how` says so. */
    bind(from: string, name: string, how: 'bind' | 'rbind' = 'bind'): string {
      execFileSync('mount', [`--${how}`, resolve(top, from), make(`data/${name}`)])
      return `${top}/data/${name}`
    },
    async mount(source: string, more: Record<string, string> = {}) {
      await mountPodVolume(
        session,
        parseFlexVolumeRequest(directory, JSON.stringify({ source, ...more }), session.config, volumeKindLookup),
      )
    },
  }
}

const RECORDS = "it holds modekeep's own records, which no pod may see; name another directory"

describe.skipIf(why !== '')(`a source that is shown at an allowed path by another mount${why}`, () => {
  it.each<[string, string, string]>([
    ['the state directory itself', 'lib/state', 'state'],
    ['a directory below its records', 'lib/state', 'state/mounts/x'],
    ['a directory of its records', 'lib/state/ownership', 'ownership'],
    ['a directory that contains it', 'lib', 'lib'],
    ['a directory below one that contains it', 'lib', 'lib/state/mounts'],
  ])("is refused if it is modekeep's records: %s", async (_what, from, source) => {
    const node = nodeWithBinds()
    node.bind(from, source.split('/')[0] ?? '')
    const path = `${node.top}/data/${source}`
    await expect(node.mount(path)).rejects.toThrow(RECORDS)
    await expect(node.mount(path, { 'kubernetes.io/readwrite': 'ro' })).rejects.toThrow(RECORDS)
    await expect(openNodeDirectoryVolume(node.session, path, { set: 0, clear: 0 })).rejects.toThrow(
      "holds modekeep's own records",
    )
  })

  it('is refused if it is a directory of records on its own file system', async () => {
    const node = nodeWithBinds()
    execFileSync('mount', ['-t', 'tmpfs', 'none', `${node.top}/lib/state/mounts`])
    fs.mkdirSync(`${node.top}/lib/state/mounts/inner`)
    node.bind('lib/state', 'state', 'rbind')
    await expect(node.mount(`${node.top}/data/state/mounts/inner`)).rejects.toThrow(RECORDS)
  })

  it("is mounted if it is the node's directory of volumes in the state directory", async () => {
    const node = nodeWithBinds()
    node.bind('lib/state', 'state')
    await node.mount(`${node.top}/data/state/volumes/shop`)
    expect(execFileSync('findmnt', ['-no', 'FSROOT', node.directory], { encoding: 'utf8' })).toContain('/volumes/shop')
  })

  it("is refused if it is in kubelet's directory of pods, or another pod's volume mounted there", async () => {
    const node = nodeWithBinds()
    const other = node.make('lib/kubelet/pods/other/volumes/kubernetes.io~csi/pv/mount')
    execFileSync('mount', ['-t', 'tmpfs', 'none', other])
    fs.mkdirSync(`${other}/inner`)
    node.bind('lib/kubelet', 'kubelet', 'rbind')
    for (const source of [
      'kubelet',
      'kubelet/pods/other',
      'kubelet/pods/other/volumes/kubernetes.io~csi/pv/mount/inner',
    ]) {
      await expect(node.mount(`${node.top}/data/${source}`)).rejects.toThrow(
        "leads to the volumes of pods in kubelet's directory",
      )
    }
  })

  it('is refused for writing if it contains the log or the configuration, and mounted read-only', async () => {
    const node = nodeWithBinds()
    const [logs, etc] = [node.bind('logs', 'logs'), node.bind('etc', 'etc')]
    await expect(node.mount(logs)).rejects.toThrow("holds modekeep's log")
    await expect(node.mount(etc)).rejects.toThrow("holds modekeep's configuration")
    await node.mount(logs, { 'kubernetes.io/readwrite': 'ro' })
  })

  it('is mounted if it is only next to them', async () => {
    const node = nodeWithBinds()
    node.make('lib/kubelet-2/pods/other')
    node.make('lib/state-2/mounts')
    node.bind('lib/kubelet-2', 'kubelet')
    node.bind('lib/state-2', 'state')
    await node.mount(`${node.top}/data/kubelet`)
    expect(fs.readdirSync(node.directory)).toEqual(['pods'])
  })
})

describe.skipIf(why !== '')(`the directory argument of a command${why}`, () => {
  it('is refused by apply and plan if it contains the log or the configuration by any path, without --yes', async () => {
    const node = nodeWithBinds()
    for (const directory of [node.bind('logs', 'logs'), node.bind('etc', 'etc')]) {
      const words = ['--fsgroup', '2000', directory]
      const apply = parseOperatorCommand(['apply', ...words], () => '/') as CommandOfVerb<'apply'>
      const plan = parseOperatorCommand(['plan', ...words], () => '/') as CommandOfVerb<'plan'>
      await expect(runVerb(node.session, apply)).rejects.toThrow(/holds modekeep's (log|configuration) "/)
      expect(await runVerb(node.session, plan)).toMatchObject({ refusal: expect.stringContaining("holds modekeep's") })
      expect(await runVerb(node.session, { ...apply, isSure: true })).toMatchObject({ walked: true })
    }
  })

  it('is a directory of the system by any path to it', () => {
    const { bind } = nodeWithBinds()
    const etc = bind('/etc', 'system')
    const refuse = (isSure?: boolean) => refuseSystemDirectory(linuxHost, etc, isSure)
    expect(() => refuse()).toThrow('is one of the system ("/etc" by another mount)')
    expect(() => refuse(true)).not.toThrow()
  })
})
