import * as fs from 'node:fs'
import { makeVolume, type Snapshot, snapshot } from '../crash/volume.ts'
import { write } from '../helpers/atomic-writer.ts'
import { makeImage } from '../helpers/disks.ts'
import { makeTree } from '../helpers/tree.ts'
import type { SoakNode } from './node.ts'
import { Odd } from './odd.ts'
import type { Kind, PodPlan } from './scene.ts'

const MANY = Array.from({ length: 300 }, (_, n) => `file d${n % 12}/f${n} ${n % 7 ? '0640' : '4750'} ${n % 3 ? 0 : 77}`)

/** What the rounds of one lane use, one after the other: one volume of each sort. */
export class Volumes {
  readonly directory: string
  readonly image: string
  readonly #originals: ReadonlyMap<string, Snapshot>
  #version = 0

  constructor(directory: string, image: string) {
    this.directory = directory
    this.image = image
    fs.mkdirSync(directory)
    makeVolume(this.tree)
    makeTree(fs, this.tree, MANY)
    makeTree(fs, `${directory}/nested`, ['dir sub 0750 9'])
    makeTree(fs, this.sub, MANY.slice(0, 40))
    makeTree(fs, this.served, ['file plain 0644'])
    makeImage(this.image, 'ext4')
    fs.mkdirSync(`${directory}/flip`)
    this.flip()
    this.#originals = new Map([this.tree, this.sub].map((path) => [path, snapshot(path)]))
  }

  get tree() {
    return `${this.directory}/tree`
  }

  get sub() {
    return `${this.directory}/nested/sub`
  }

  get served() {
    return `${this.directory}/served`
  }

  /** Gives the flipping volume its next content, as kubelet gives it to a ConfigMap. */
  flip(): void {
    try {
      write(`${this.directory}/flip`, { config: `version ${++this.#version}\n` })
    } catch (error) {
      // A file is busy while a mount covers the one that shows it: until the replacement of a mount ends, or the next
      // call ends that of one that was killed. Kubelet reports it too, the new content being there.
      if (!/resource busy/.test(String(error))) throw error
    }
  }

  /** Removes what was busy. @throws {Error} if anything is, still, with no pod left */
  removeOldContent(): void {
    const flip = `${this.directory}/flip`
    const current = fs.readlinkSync(`${flip}/..data`)
    for (const name of fs.readdirSync(flip)) {
      if (name.startsWith('..2') && name !== current) fs.rmSync(`${flip}/${name}`, { recursive: true })
    }
  }

  /** @throws {Odd} naming inodes that are not as they were made */
  mustBeOriginal(path: string): void {
    const [now, then] = [snapshot(path), this.#originals.get(path) ?? {}]
    const differ = [...new Set([...Object.keys(then), ...Object.keys(now)])].filter(
      (name) => JSON.stringify(now[name]) !== JSON.stringify(then[name]),
    )
    if (differ.length === 0) return
    const some = differ
      .slice(0, 3)
      .map((name) => `${name}: ${JSON.stringify(now[name])}, was ${JSON.stringify(then[name])}`)
    throw new Odd(`${differ.length} inodes of ${path} are not as before: ${some.join('; ')}`)
  }

  /** The options that kubelet gives the driver. */
  options(kind: Kind, { group, restores, policy }: PodPlan): Record<string, string> {
    const { directory, tree } = this
    const fsGroup = { 'kubernetes.io/mounterArgs.FsGroup': String(group) }
    const restore = { restoreOnUnmount: String(restores) }
    const walk = { ...fsGroup, ...restore, ownership: 'walk', fsGroupChangePolicy: policy }
    const of = (fsType: string) => ({ 'kubernetes.io/fsType': fsType })
    switch (kind) {
      case 'keep':
        return { source: tree, ...walk }
      case 'grant':
        return { source: tree, ...walk, groupAccess: 'grant' }
      case 'idmap':
        return { source: tree, ...fsGroup, ownership: 'idmap' }
      case 'bind':
        return { source: tree, ...fsGroup }
      case 'sub path':
        return { source: `${directory}/nested`, subPath: 'sub', ...walk }
      case 'flip':
        return { source: `${directory}/flip`, subPath: 'config' }
      case 'tmpfs':
        return { ...of('tmpfs'), mountOptions: 'size=1m' }
      case 'image':
        return { ...of('ext4'), source: this.image, ...walk }
      case 'fuse':
        return { ...of('fuse.bindfs'), source: this.served, ...fsGroup, ownership: 'auto' }
    }
  }

  /** Restores what no pod has asked for, and looks. @throws {Odd} unless all is as it was made */
  async putBack(node: SoakNode): Promise<void> {
    for (const path of [this.tree, this.sub]) {
      await node.restore(path)
      this.mustBeOriginal(path)
    }
  }
}
