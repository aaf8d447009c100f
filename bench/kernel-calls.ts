import * as fs from 'node:fs'
import { linuxInodes as inodes } from '../src/kernel/linux/inodes.ts'
import { aligned } from './columns.ts'
import { mountVolume, unmountVolume } from './volume.ts'

const TIMES = 200_000
const NAME = Buffer.from('file')

/** What each call of a walk costs on ext4, run from the sources, the best of five times: a text for people. */
export function kernelCalls(volumes: string): string {
  const volume = `${volumes}/kernel-calls`
  mountVolume('ext4', volume, 1000)
  fs.writeFileSync(`${volume}/${NAME}`, '')
  const directory = inodes.openTrusted(volume)
  const file = inodes.openEntry(directory, NAME)
  let group = 0
  const rows = Object.entries({
    'statx of a name': () => inodes.statEntry(directory, NAME),
    'openat of a name with O_PATH, and close': () => inodes.close(inodes.openEntry(directory, NAME)),
    'statx of a handle, all fields': () => inodes.stat(file),
    'listxattrat of a name': () => inodes.attributeNames(file, directory, NAME),
    'statx of a handle, group and mode': () => inodes.ownership(file),
    'fchownat to another group': () => inodes.chown(file, ++group % 2),
  }).map(([what, call]) => [what, ...microseconds(call)])
  inodes.close(file)
  inodes.close(directory)
  unmountVolume(volume)
  const table = aligned([['microseconds a call', 'user', 'system'], ...rows])
  return `${table.join('\n')}\n`
}

function microseconds(call: () => void): [user: string, system: string] {
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage()
    for (let time = 0; time < TIMES; time++) call()
    return process.cpuUsage(before)
  })
  const least = (part: 'user' | 'system') => (Math.min(...rounds.map((round) => round[part])) / TIMES).toFixed(2)
  return [least('user'), least('system')]
}
