import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakePrograms, RECORDING } from '../helper/fake-programs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

/** FakePrograms that take a file for what it holds: one that modekeep knows, and one that only the node does. */
const NAMES = ['squashfuse', 'fuse2fs']

describe.skipIf(!isRoot).each(NAMES)(`an image for fuse.%s that a pod can write${suiteTitle}`, (name) => {
  let stage: Stage
  let programs: FakePrograms
  let own: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['bind', `fuse.${name}`] })
    programs = new FakePrograms()
    programs.add(name, RECORDING)
    stage.host = { ...stage.host, helpers: programs.helpers }
    own = `${stage.top}/volumes/own`
    fs.mkdirSync(own)
    fs.writeFileSync(`${own}/image`, 'hsqs')
  })
  afterEach(() => stage.close())

  const ask = (source: string, more: Record<string, string> = {}) =>
    stage.mount('a', { source, 'kubernetes.io/fsType': `fuse.${name}`, ...more })
  const wasRun = () => {
    const isThere = fs.existsSync(`${programs.top}/argv`)
    fs.rmSync(`${programs.top}/argv`, { force: true })
    return isThere
  }
  /** The fake program mounts nothing. */
  const expectRun = async (source: string) => {
    await expect(ask(source)).rejects.toThrow('has mounted nothing')
    expect(wasRun()).toBe(true)
  }
  const expectRefused = async (source: string, words: string) => {
    for (const more of [{}, { 'kubernetes.io/readwrite': 'ro' }]) await expect(ask(source, more)).rejects.toThrow(words)
    expect(wasRun()).toBe(false)
    expect(stage.layers('a')).toEqual([])
  }

  it('is read by no program of the node under any name', async () => {
    await expectRefused(`${own}/image`, 'who writes to an image rules the program that reads it as root')
    // Beside the directories that pods may mount; then with a name in one.
    const beside = `${stage.top}/volumes/image`
    fs.renameSync(`${own}/image`, beside)
    await expectRun(beside)
    fs.linkSync(beside, `${own}/image`)
    await expectRefused(beside, 'has 2 names (hard links)')
    fs.rmSync(beside)
    // Where no rule lets pods write, but by a mount that shows the same elsewhere.
    const elsewhere = `${stage.top}/images`
    fs.mkdirSync(elsewhere)
    execFileSync('mount', ['--bind', own, elsewhere])
    stage.config = {
      ...stage.config,
      allow: [...stage.config.allow, { sources: [`${elsewhere}/*`], fsTypes: [`fuse.${name}`] }],
    }
    await expectRefused(`${elsewhere}/image`, 'may be written by pods')
    execFileSync('umount', [elsewhere])
  })

  it('is read by no program while an existing mount lets the pod write it, despite changed rules', async () => {
    await stage.mount('b', { source: own })
    stage.config = { ...stage.config, allow: [{ sources: [`${own}/*`], fsTypes: [`fuse.${name}`] }] }
    await expectRefused(`${own}/image`, 'may be written by pod')
    await stage.unmount('b')
    await expectRun(`${own}/image`)
  })
})
