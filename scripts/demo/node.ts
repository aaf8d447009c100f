import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { type Listed, listTree, makeTree, SIX_FILES } from '../../test/helpers/tree.ts'

/** A node with one volume of six files, and kubelet's side of the calls. */
export interface DemoNode {
  /** What the place is, in words. */
  where: string
  init(): Promise<string>
  mount(pod: string): Promise<void>
  unmount(pod: string): Promise<unknown>
  files(): Record<string, Listed>
  layers(pod: string): number
  close(): void
}

const DEMO_MOUNT_OPTIONS = {
  'kubernetes.io/fsType': '',
  'kubernetes.io/mounterArgs.FsGroup': '2000',
  'kubernetes.io/pod.namespace': 'default',
  'kubernetes.io/pvOrVolumeName': 'v',
  'kubernetes.io/readwrite': 'rw',
  ownership: 'walk',
  restoreOnUnmount: 'true',
}

/** The built binary on real mounts of this machine, called as kubelet calls it. */
export function createRealNode(where: string): DemoNode {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-demo-`)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'demo', top])
  const source = `${top}/volumes/data`
  makeTree(fs, source, SIX_FILES)
  fs.writeFileSync(
    `${top}/config.json`,
    JSON.stringify({ stateDir: `${top}/state`, logFile: `${top}/log`, allow: [{ sources: [`${top}/volumes/*`] }] }),
  )
  const directory = (pod: string) => `${top}/pods/${pod}/volumes/modekeep~fs/v`
  const call = (...args: string[]): string => {
    const binary = resolve(import.meta.dirname, '../../dist/modekeep')
    const text = execFileSync(binary, args, { env: { MODEKEEP_CONFIG: `${top}/config.json` }, encoding: 'utf8' })
    const reply = JSON.parse(text)
    if (reply.status !== 'Success') throw new Error(`${args[0]}: ${text}`)
    return text.trim()
  }
  return {
    where,
    init: async () => call('init'),
    async mount(pod) {
      fs.mkdirSync(directory(pod), { recursive: true, mode: 0o750 })
      call('mount', directory(pod), JSON.stringify({ ...DEMO_MOUNT_OPTIONS, 'kubernetes.io/pod.name': pod, source }))
    },
    async unmount(pod) {
      call('unmount', directory(pod))
      fs.rmdirSync(directory(pod))
    },
    files: () => listTree(fs, source),
    layers: (pod) =>
      selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), directory(pod)).length,
    close() {
      execFileSync('umount', ['--lazy', top])
      fs.rmdirSync(top)
    },
  }
}

/** The same code without the kernel: shows the decisions, proves nothing about safety. */
export async function createMemoryNode(where: string): Promise<DemoNode> {
  const { memoryStage } = await import('../../test/helpers/stage.ts')
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  return {
    where,
    init: async () => '(no binary in memory)',
    mount: (pod) => stage.mount(pod, { ...DEMO_MOUNT_OPTIONS, source }),
    unmount: (pod) => stage.unmount(pod),
    files: () => listTree(stage.fs, source),
    layers: (pod) => stage.layers(pod).length,
    close: () => stage.close(),
  }
}
