import * as fs from 'node:fs'
import { afterEach } from 'vitest'
import { attachDisk, detachDisks, makeImage } from '../../helpers/disks.ts'
import { BinaryNode } from '../../helpers/kubelet-call.ts'
import { run } from '../cases/node.ts'
import { makeLabelledTree } from './labelled-tree.ts'
import { createDomainWrapper, labelTree } from './selinux.ts'

export type LabelledFsType = 'ext4' | 'xfs'
/** The type of volumes of pods. */
const VOLUME_TYPE = 'container_file_t'

const mounted: string[] = []

/** Call it once in a test file: unmounts the disks of each test. */
export function unmountDisksAfterEach(): void {
  afterEach(() => {
    for (const directory of mounted.splice(0).reverse()) run('umount', directory)
    detachDisks()
  })
}

/** A node whose directories are labelled like kubelet's, with one pod, "a". Its calls run in a domain. */
export class LabelledNode extends BinaryNode {
  constructor(domain = 'unconfined_t') {
    super()
    this.podDirectory('a')
    labelTree('container_var_lib_t', this.top)
    labelTree(VOLUME_TYPE, `${this.top}/pods`, this.volumes)
    this.configure({ allow: [{ sources: [`${this.volumes}/*`], fsTypes: ['bind', 'ext4', 'xfs'] }] })
    this.enter(domain)
  }

  /** Lets the following calls run in a domain. */
  enter(domain: string): void {
    this.wrapper = createDomainWrapper(domain)
  }

  /** Mounts a disk as the directory of the volumes. @returns a directory of it with inodes of several labels */
  mountDisk(fsType: LabelledFsType, { types, options = [] }: { types?: string[]; options?: string[] } = {}): string {
    const image = `${this.top}/disk.img`
    this.makeImage(image, fsType, types)
    run('mount', '-o', ['nosuid', ...options].join(), attachDisk(image), this.volumes)
    mounted.push(this.volumes)
    return `${this.volumes}/sub`
  }

  /** Makes an image with a directory `sub` whose inodes have several labels. */
  makeImage(image: string, fsType: LabelledFsType, types?: string[]): void {
    makeImage(image, fsType)
    const directory = fs.mkdtempSync(`${this.top}/image-`)
    run('mount', '-o', 'loop', image, directory)
    labelTree(VOLUME_TYPE, directory)
    makeLabelledTree(`${directory}/sub`, types)
    run('umount', directory)
    labelTree(VOLUME_TYPE, image)
  }
}
