import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { cannotMountWith, requireProgram } from '../helpers/needs.ts'
import { expectSame, GROUP, makeVolume, owned, type Snapshot, snapshot } from './volume.ts'

const skipped = cannotMountWith('mkfs.ext4')
const SUCCESS = { status: 'Success' }
/** ext4 commits on its own only after so many seconds: what is not synced is lost. */
const COMMIT = 'commit=600'

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'ignore' })

/** A node whose state and whose volumes lie on an ext4 disk each. */
class TwoDisks extends BinaryNode {
  readonly source = `${this.volumes}/data`
  readonly original: Snapshot
  readonly #disks = [
    [`${this.top}/volumes.img`, this.volumes],
    [`${this.top}/state.img`, this.state],
  ] as const

  constructor() {
    super()
    for (const [image, directory] of this.#disks) {
      fs.mkdirSync(directory, { recursive: true })
      run('truncate', '-s', '64M', image)
      run(requireProgram('mkfs.ext4'), '-q', '-F', image)
      run('mount', '-o', `loop,${COMMIT}`, image, directory)
    }
    fs.chmodSync(this.state, 0o700)
    makeVolume(this.source)
    for (let n = 0; n < 500; n++) fs.writeFileSync(`${this.source}/open/file-${n}`, '')
    this.original = snapshot(this.source)
    run('sync')
  }

  mount(restoreOnUnmount = 'true') {
    const asked = { source: this.source, ownership: 'walk', restoreOnUnmount }
    const options = JSON.stringify({ ...asked, 'kubernetes.io/fsGroup': String(GROUP) })
    return this.call('mount', this.podDirectory('a'), options)
  }

  unmount() {
    return this.call('unmount', this.podDirectory('a'))
  }

  /** What the disks have now is all that is left. The first disk is read first, so it is the older one. */
  cutPower(first: 'volume' | 'state'): void {
    const disks = first === 'volume' ? this.#disks : this.#disks.toReversed()
    for (const [image] of disks) fs.copyFileSync(image, `${image}.cut`)
    while (this.layers('a').length > 0) run('umount', '--lazy', this.podDirectory('a'))
    for (const [image, directory] of this.#disks) {
      run('umount', directory)
      // The same file: a copy would be another disk.
      fs.copyFileSync(`${image}.cut`, image)
      run('mount', '-o', `loop,${COMMIT}`, image, directory)
    }
  }

  restore(): void {
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${this.top}/config.json` }
    execFileSync(BINARY, ['restore', this.source], { env, stdio: 'pipe' })
  }
}

describe.skipIf(skipped !== '')(`records and a volume on two disks${skipped && ` (skipped: ${skipped})`}`, () => {
  it('a power cut right after the unmount leaves every inode restored', async () => {
    const node = new TwoDisks()
    expect(await node.mount()).toEqual(SUCCESS)
    run('sync')
    expect(await node.unmount()).toEqual(SUCCESS)
    node.cutPower('volume')
    expectSame(snapshot(node.source), node.original)
    // The removal of a record may be lost: then a restore finds nothing to do.
    node.restore()
    expectSame(snapshot(node.source), node.original)
  })

  it.each(['true', 'false'])(
    'a power cut right after a mount with restoreOnUnmount "%s" leaves the records of every changed inode',
    async (restoreOnUnmount) => {
      const node = new TwoDisks()
      expect(await node.mount(restoreOnUnmount)).toEqual(SUCCESS)
      run('sync', '--file-system', node.volumes)
      node.cutPower('state')
      expectSame(snapshot(node.source), owned(node.original, node.source))
      node.restore()
      expectSame(snapshot(node.source), node.original)
    },
  )

  it('a power cut right after the mount leaves every inode changed, as its record is complete', async () => {
    const node = new TwoDisks()
    expect(await node.mount()).toEqual(SUCCESS)
    node.cutPower('volume')
    expectSame(snapshot(node.source), owned(node.original, node.source))
    node.restore()
    expectSame(snapshot(node.source), node.original)
  })
})
