import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Counts, differences, readCounts, total, usual } from '../../bench/syscalls.ts'
import type { Host } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import { reservationRecords } from '../../src/state/process-records.ts'
import { locateVolumeRecords, type Store } from '../../src/state/record-directories.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { READY } from '../helpers/mount-records.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, memoryStage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const LEFTOVERS = 2000
const SPECS = ['file a 0640 5', 'file sub/b 0640 6', 'file sub/deep/c 0640 7']

/** As so many pods leave it whose volumes were never restored, and whose unmount never came; and as killed calls do. */
function leave(store: Store, count: number): void {
  for (let n = 0; n < count; n++) {
    const volume = `ab-${n.toString(16)}-1`
    const source = `/srv/gone/${n}`
    const walk = { group: 2000, groupAccess: 'keep', complete: true, restorePending: false } as const
    volumeRecords.write(store, { volume, source, ...walk })
    const { path } = locateVolumeRecords(store, volume)
    for (const name of ['journal.db', 'lock']) store.host.files.write(`${path}/${name}`, new Uint8Array())
    const given = { by: 'walk', group: 2000, why: 'asked for' } as const
    const directory = `/pods/gone-${n}/volumes/modekeep~fs/v`
    mountRecords.write(store, { ...READY, boot: store.host.bootId(), directory, source, volume, given })
    if (n < 20) reservationRecords.write(store, { volume, source, group: 3000, directory: '/pods/dead/v' })
  }
}

describe('records of earlier pods', () => {
  it.each(['walk', 'idmap'])('add no call of the host to a mount and an unmount: ownership %s', async (ownership) => {
    const [none, many] = [await hostCalls(0, ownership), await hostCalls(LEFTOVERS, ownership)]
    expect(total(none)).toBeGreaterThan(50)
    expect(differences(none, many)).toEqual([])
  })

  const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
  it.skipIf(!isRoot)(
    `records of earlier pods add no system call to a mount with a walk and its unmount${title}`,
    () => {
      // Without any, the directories they lie in come and go.
      const [one, many] = [systemCalls(1), systemCalls(LEFTOVERS)]
      expect(one.getdents64).toBeGreaterThan(0)
      const isMore = (name: string) => (many[name] ?? 0) - (one[name] ?? 0) > FEW
      expect(Object.keys(many).filter(isMore)).toEqual([])
    },
  )
})

/**
 * Of a mount and the unmount that restores, after a first one. Names that were listed count as calls. Calls to inodes do
 * not: a walk looks again at what has just been changed.
 */
async function hostCalls(leftovers: number, ownership: string): Promise<Counts> {
  const stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes/data`, SPECS)
  makeTree(stage.fs, `${stage.top}/volumes/held`, SPECS)
  leave(stage, leftovers)
  const restoring = ownership === 'walk' ? { restoreOnUnmount: 'true' } : {}
  const asked = { ownership, ...restoring, 'kubernetes.io/fsGroup': '2000' }
  const life = async () => {
    await stage.mount('a', { ...asked, source: `${stage.top}/volumes/data` })
    await stage.unmount('a')
  }
  await stage.mount('b', { ...asked, source: `${stage.top}/volumes/held` })
  await life()
  const counts: Counts = {}
  const add = (name: string, calls: number) => {
    counts[name] = (counts[name] ?? 0) + calls
  }
  stage.host = counted(stage.host, '', add)
  await life()
  return counts
}

function counted<T extends object>(of: T, name: string, add: (name: string, calls: number) => void): T {
  return new Proxy(of, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      const called = `${name}${String(key)}`
      if (called === 'inodes') return value
      if (typeof value === 'object' && value !== null) return counted(value, `${called}.`, add)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args)
        add(called, 1)
        if (called === 'files.list') add('names listed', (result as string[]).length)
        return result
      }
    },
  })
}

// Node's heap grows or not, and its threads take a job or not.
const OF_FILES =
  /^(openat|getdents64|flock|statx|newfstatat|fstat|stat|lstat|unlink|unlinkat|rename|mkdir|rmdir|fsync|fdatasync|pwrite64|readlink)$/
const RUNS = 3
/** Calls that vary by chance: how often a lock is tried, or a file is checked again. */
const FEW = 20

/** Of every thread. */
function systemCalls(leftovers: number): Counts {
  const node = new BinaryNode()
  const source = `${node.volumes}/data`
  makeTree(fs, source, SPECS)
  const directory = node.podDirectory('a')
  leave({ host: linuxHost as Host, config: { stateDir: node.state } }, leftovers)
  const asked = { source, ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
  const table = `${node.top}/table`
  const countsOf = (...args: string[]) => {
    const call = ['--addr-no-randomize', requireProgram('strace'), '-f', '-c', '-o', table, BINARY, ...args]
    const answer = execFileSync('setarch', call, { env: { MODEKEEP_CONFIG: `${node.top}/config.json` } })
    expect(JSON.parse(answer.toString())).toMatchObject({ status: 'Success' })
    return Object.entries(readCounts(fs.readFileSync(table, 'utf8'))).filter(([name]) => OF_FILES.test(name))
  }
  const runs = Array.from({ length: RUNS + 1 }, () => {
    const mounted = countsOf('mount', directory, JSON.stringify(asked))
    const unmounted = countsOf('unmount', directory).map(([name, calls]) => [`${name} of the unmount`, calls] as const)
    return Object.fromEntries([...mounted, ...unmounted])
  })
  // The first one also removes what killed calls have left.
  return usual(runs.slice(1))
}
