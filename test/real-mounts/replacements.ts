import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { publish } from './reader.ts'

/** Where a change is made: the directory of the node's volumes, and the mount directory. */
export interface Place {
  volumes: string
  directory: string
}

export interface Replacement {
  name: string
  /**
   * Changes something, so that the next `mount` with the options that are given back replaces what is mounted. A reader
   * then reads `turn`, or what it read before.
   */
  change(place: Place, turn: number): Record<string, string>
}

/** Everything for which a mount is replaced. */
export const REPLACEMENTS: readonly Replacement[] = [
  {
    name: 'another source',
    change({ volumes }, turn) {
      const source = `${volumes}/${turn % 2}`
      publish(source, turn)
      return { source }
    },
  },
  {
    name: 'other options',
    change({ volumes }, turn) {
      publish(`${volumes}/data`, turn)
      return { source: `${volumes}/data`, mountOptions: turn % 2 ? 'noexec' : 'noatime' }
    },
  },
  {
    name: 'another group, with a walk',
    change({ volumes }, turn) {
      publish(`${volumes}/data`, turn)
      return { source: `${volumes}/data`, ownership: 'walk', 'kubernetes.io/fsGroup': String(2000 + (turn % 2)) }
    },
  },
  {
    name: 'a source that was deleted and made again',
    change({ volumes }, turn) {
      const source = `${volumes}/data`
      fs.rmSync(source, { recursive: true, force: true })
      publish(source, turn)
      return { source }
    },
  },
  {
    name: 'a source that was exchanged for another directory',
    change({ volumes }, turn) {
      const source = `${volumes}/data`
      fs.rmSync(`${volumes}/old`, { recursive: true, force: true })
      if (fs.existsSync(source)) fs.renameSync(source, `${volumes}/old`)
      publish(source, turn)
      return { source }
    },
  },
  {
    name: 'layers of a driver that mounts again at every restart of kubelet',
    change({ volumes, directory }, turn) {
      const source = `${volumes}/data`
      publish(source, turn)
      for (let layer = 0; layer < 1 + (turn % 4); layer++) execFileSync('mount', ['--bind', source, directory])
      return { source }
    },
  },
]
