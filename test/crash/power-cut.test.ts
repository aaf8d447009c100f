import { describe, expect, it } from 'vitest'
import { restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import type { Handle, Inodes } from '../../src/kernel/host.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { Killed, type MemoryWorld } from '../memory-host/world.ts'

/**
 * A node in memory loses its power in place of its n-th effect, for every n. The records are on a disk of their own,
 * where all that was written stays. The volume's disk loses changes that were not synced: all of them, or each second.
 */
const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'file sub/other 0600 9', 'file sub/run 2755 7']

type Loss = 'every change' | 'each second change' | 'the latest change' | 'no change'
const LOSSES: Loss[] = ['every change', 'each second change', 'the latest change', 'no change']
const isLost: Record<Loss, (index: number, count: number) => boolean> = {
  'every change': () => true,
  'each second change': (index) => index % 2 === 1,
  'the latest change': (index, count) => index === count - 1,
  'no change': () => false,
}

/** Changes of a volume's inodes that its disk does not have yet: what undoes each. */
class LossyDisk {
  readonly #world: MemoryWorld
  #undo: { inode: bigint; undo: () => void }[] = []

  constructor(world: MemoryWorld) {
    this.#world = world
  }

  over(inodes: Inodes): Inodes {
    const keep = (handle: Handle) => {
      const { inode, gid, mode } = inodes.stat(handle)
      const place = { ...this.#world.at(handle) }
      this.#undo.push({
        inode,
        undo: () => {
          const held = this.#world.open(place)
          inodes.chown(held, gid)
          inodes.chmod(held, mode & 0o7777)
        },
      })
    }
    return {
      ...inodes,
      chown: (handle, gid) => {
        keep(handle)
        inodes.chown(handle, gid)
      },
      chmod: (handle, mode) => {
        keep(handle)
        inodes.chmod(handle, mode)
      },
      syncFileSystem: (handle) => {
        inodes.syncFileSystem(handle)
        this.#undo = []
      },
    }
  }

  /** A disk keeps a later change of an inode only with its earlier ones. */
  cut(stage: Stage, loss: Loss): void {
    const lost = new Set<bigint>()
    const count = this.#undo.length
    const chosen = this.#undo.filter(({ inode }, index) => {
      if (isLost[loss](index, count)) lost.add(inode)
      return lost.has(inode)
    })
    stage.reboot()
    for (const { undo } of chosen.reverse()) undo()
    this.#undo = []
  }
}

interface Node {
  stage: Stage
  source: string
  asked: Record<string, string>
  disk: LossyDisk
}

function arrange(): Node {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, TREE)
  if (stage.world === undefined) throw new Error('no stage in memory')
  const disk = new LossyDisk(stage.world)
  stage.host = { ...stage.host, inodes: disk.over(stage.host.inodes) }
  return {
    stage,
    source,
    asked: { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' },
    disk,
  }
}

const original = (() => {
  const { stage, source } = arrange()
  const listed = listTree(stage.fs, source)
  return { modes: modes(listed), groups: groups(listed) }
})()

function expectOriginal({ stage, source }: Node): void {
  const listed = listTree(stage.fs, source)
  expect({ modes: modes(listed), groups: groups(listed) }).toEqual(original)
}

/** Cuts the power at each effect of a call in turn, and after the last. @returns how many there are */
async function cutEverywhere(
  loss: Loss,
  before: (node: Node) => Promise<unknown>,
  call: (node: Node) => Promise<unknown>,
  after: (node: Node) => Promise<void>,
): Promise<number> {
  for (let n = 0; ; n++) {
    const node = arrange()
    await before(node)
    if (node.stage.world) node.stage.world.killAt = n
    const hasDied = await call(node).then(
      () => false,
      (error) => {
        if (!(error instanceof Killed)) throw error
        return true
      },
    )
    node.disk.cut(node.stage, loss)
    node.stage.warnings.length = 0
    try {
      await after(node)
    } catch (error) {
      throw new Error(`power cut at effect ${n}`, { cause: error })
    }
    if (!hasDied) return n
  }
}

/** Of a volume that no pod wants restored: the record of its mount, and of its walk until that was complete. */
function emptyUnsyncedRecords({ stage: { fs, config } }: Node): void {
  const directories = ['mounts', 'ownership'].flatMap((name) => {
    const path = `${config.stateDir}/${name}`
    return fs.existsSync(path) ? fs.readdirSync(path).map((entry) => `${path}/${entry}`) : []
  })
  for (const file of [`${config.stateDir}/boot`, ...directories.map((directory) => `${directory}/record.json`)]) {
    if (fs.existsSync(file) && !String(fs.readFileSync(file)).includes('"complete":true')) fs.writeFileSync(file, '')
  }
}

const mount = ({ stage, asked }: Node) => stage.mount('a', asked)
const unmount = ({ stage }: Node) => stage.unmount('a')

async function mountAndRestore(node: Node): Promise<void> {
  await mount(node)
  expect(new Set(Object.values(groups(listTree(node.stage.fs, node.source))))).toEqual(new Set([2000]))
  await unmount(node)
  expectOriginal(node)
}

describe.each(LOSSES)('after a power cut that loses %s of the volume since its last sync', (loss) => {
  it('at an effect of a mount, the next mount and its unmount return the first state', async () => {
    const points = await cutEverywhere(loss, async () => {}, mount, mountAndRestore)
    expect(points).toBeGreaterThan(25)
  })

  it('at an effect of an unmount, a manual restore returns the first state', async () => {
    const points = await cutEverywhere(loss, mount, unmount, async (node) => {
      const { stage, source } = node
      await stage.byHand(source, restoreNodeDirectory)
      expectOriginal(node)
    })
    expect(points).toBeGreaterThan(25)
  })

  it('at an effect of an unmount, the next mount and its unmount return the first state', async () => {
    await cutEverywhere(loss, mount, unmount, mountAndRestore)
  })

  it('at an effect of a first mount that empties records without a sync, the next mount and its unmount return the first state', async () => {
    const mountWithoutRestore = ({ stage, asked }: Node) => stage.mount('a', { ...asked, restoreOnUnmount: 'false' })
    const points = await cutEverywhere(
      loss,
      async () => {},
      mountWithoutRestore,
      async (node) => {
        emptyUnsyncedRecords(node)
        await mountAndRestore(node)
      },
    )
    expect(points).toBeGreaterThan(20)
  })

  it('that emptied the record of a first walk, the next mount of any volume recovers it from the journal', async () => {
    const node = arrange()
    const { stage, source, asked } = node
    await stage.mount('a', { ...asked, restoreOnUnmount: 'false' })
    const [volume = ''] = listVolumesWithRecords(stage)
    const before = volumeRecords.read(stage, volume)
    node.disk.cut(stage, loss)
    for (const kept of ['boot', `ownership/${volume}/record.json`])
      stage.fs.writeFileSync(`${stage.config.stateDir}/${kept}`, '')
    expect(volumeRecords.find(stage, volume)).toEqual({})
    makeTree(stage.fs, `${stage.top}/volumes/other`, SIX_FILES)
    await stage.mount('b', { ...asked, source: `${stage.top}/volumes/other` })
    expect(volumeRecords.read(stage, volume)).toEqual({ ...before, source, complete: false })
    expect(stage.warnings).toEqual([])
  })

  it('during a second restore, which follows a killed one, the next restore returns the first state', async () => {
    for (const killed of [30, 34, 38, 42]) {
      const killedBefore = async (node: Node) => {
        await mount(node)
        if (node.stage.world) node.stage.world.killAt = killed
        await unmount(node).catch((error) => {
          if (!(error instanceof Killed)) throw error
        })
        node.stage.world?.revive()
      }
      await cutEverywhere(loss, killedBefore, unmount, async (node) => {
        const { stage, source } = node
        await stage.byHand(source, restoreNodeDirectory)
        expectOriginal(node)
      })
    }
  })
})
