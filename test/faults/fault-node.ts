import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { type ContainerTask, type ContainerTaskResult, runContainerTask } from '../../src/container/container-task.ts'
import { publishVolume, unpublishVolume } from '../../src/frontends/csi/publish.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { parseMountinfo } from '../../src/kernel/mount-table/mountinfo.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { healMounts } from '../../src/repair/heal.ts'
import type { Session } from '../../src/state/session.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { Crashing } from '../crash/every-call.ts'
import { expectSame, type Snapshot, snapshot } from '../crash/volume.ts'
import { makeImage } from '../helpers/disks.ts'
import { type Ended, modekeepOn, type Program, runToEnd } from '../helpers/inject.ts'
import { NodeDirectory } from '../helpers/node-directory.ts'
import { makeTree } from '../helpers/tree.ts'
import { leftovers } from './leftovers.ts'

const NO_GROUP = { ownership: 'none', restoreOnUnmount: 'false' }

/** A node with a volume of twelve inodes, another volume and an image, on which calls are made to fail. */
export class FaultNode extends Crashing {
  readonly other: string
  readonly image: string
  /** Those of the situation. */
  pods: string[] = ['a']
  readonly #config: NodeConfig
  readonly #handOver: ((call: Program) => Promise<Ended>) | undefined

  /** @param handOver makes FlexVolume calls over the loader; without it they are made from this process */
  constructor(handOver?: (call: Program) => Promise<Ended>) {
    super('tmpfs', new NodeDirectory())
    this.#handOver = handOver
    const { node } = this
    this.other = `${node.volumes}/other`
    this.image = `${node.top}/images/image`
    const file = `${node.top}/config.json`
    const allow = [{ sources: [`${node.volumes}/*`] }, { sources: [this.image], fsTypes: ['ext4'] }]
    const config = { ...JSON.parse(fs.readFileSync(file, 'utf8')), allow }
    fs.writeFileSync(file, JSON.stringify(config))
    this.#config = { ...DEFAULT_CONFIG, ...config }
  }

  override fresh(): void {
    for (const point of this.mountedInState().reverse()) execFileSync('umount', ['--lazy', point])
    super.fresh()
    makeTree(fs, this.other, ['file plain 0600 9'])
    fs.writeFileSync(`${this.other}/plain`, 'other')
    for (const pod of fs.readdirSync(`${this.node.top}/pods`)) this.#emptyDirectory(pod)
  }

  /** Containers' clones and their staging mounts, the upper ones first. */
  mountedInState(): string[] {
    const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
    return rows
      .map(({ mountPoint }) => mountPoint)
      .filter((point) => point.startsWith(`${this.node.state}/`))
      .sort()
  }

  /** What kubelet makes before its first call. */
  #emptyDirectory(pod: string): void {
    fs.rmSync(`${this.node.top}/pods/${pod}`, { recursive: true, force: true })
    if (this.pods.includes(pod)) this.node.podDirectory(pod)
  }

  /** Puts an image of an ext4 where no pod can write. */
  putImage(): void {
    const master = `${this.node.top}/image`
    if (!fs.existsSync(master)) makeImage(master, 'ext4')
    fs.mkdirSync(dirname(this.image), { recursive: true })
    execFileSync('cp', ['--sparse=always', master, this.image])
  }

  plainMount(pod: string, more: Record<string, string> = {}): string[] {
    return this.mountCall(pod, { ...NO_GROUP, ...more })
  }

  unmountCall(pod: string): string[] {
    return ['unmount', this.node.podDirectory(pod)]
  }

  /** A call that nothing befalls, made from this process: a start of the executable for each would take longer than all else. */
  async succeed(call: readonly string[]): Promise<void> {
    const [verb = '', directory = '', options = ''] = call
    if (this.#handOver && (verb === 'mount' || verb === 'unmount')) {
      const { text } = await this.#handOver(modekeepOn(this.node, call))
      return expect(text).toBe('{"status":"Success"}\n')
    }
    const session = this.#session()
    if (verb === 'mount')
      await mountPodVolume(session, parseFlexVolumeRequest(directory, options, this.#config, volumeKindLookup))
    else if (verb === 'unmount') await unmountPodVolume(session, directory)
    else if (verb === 'publish') {
      const request = parseFlexVolumeRequest(directory, options, this.#config, volumeKindLookup)
      await publishVolume(session, { ...request, lifecycle: 'inline' })
    } else if (verb === 'unpublish') await unpublishVolume(session, directory)
    else throw new Error(`no call of kubelet's: ${verb}`)
  }

  /** A job of the runtime's plugin, in the same way. */
  async succeedFor(job: ContainerTask): Promise<Extract<ContainerTaskResult, { failure?: undefined }>> {
    const result = await runContainerTask(this.#session(), job)
    if (result.failure !== undefined) throw new Error(`${job.do}: ${result.failure}`)
    return result
  }

  #session(): Session {
    return { host: linuxHost, config: this.#config, note: () => {}, warn: () => {} }
  }

  /** What a person calls. */
  byHand(args: readonly string[]): Promise<Ended> {
    return runToEnd(modekeepOn(this.node, args))
  }

  async succeedByHand(args: readonly string[]): Promise<void> {
    const { code, errors, text } = await this.byHand(args)
    expect({ code, errors }, text).toEqual({ code: 0, errors: '' })
  }

  /** The directory has one mount, which shows this. */
  expectShows(pod: string, wanted: Snapshot): void {
    expect(this.node.layers(pod)).toHaveLength(1)
    expectSame(snapshot(this.node.podDirectory(pod)), wanted)
  }

  expectUntouched(): void {
    expectSame(snapshot(this.source), this.original)
  }

  /** A volume by what its file says; '' for nothing, and nothing by half. */
  shown(pod: string): string {
    const directory = this.node.podDirectory(pod)
    // An empty file is what a subPath of a file is mounted on.
    if (!fs.statSync(directory).isDirectory()) return fs.readFileSync(directory, 'utf8')
    if (fs.readdirSync(directory).length === 0) return ''
    return fs.readFileSync(`${directory}/plain`, 'utf8')
  }

  /**
   * As on a node that never saw the pods.
   * @param isHealed what a call could not remove, as every try failed, is heal's
   */
  async expectAllGone(isHealed: boolean): Promise<void> {
    for (const pod of this.pods) await this.succeed(this.unmountCall(pod))
    if (isHealed) await healMounts(this.#session(), false)
    expect(leftovers(this.node, this.pods, ['data', 'other', 'image']).join('\n')).toBe('')
    this.expectUntouched()
    expect(fs.readFileSync(`${this.other}/plain`, 'utf8')).toBe('other')
  }

  close(): void {
    this.node.close()
  }
}
