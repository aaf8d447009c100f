import { fstatSync } from 'node:fs'
import { walkForCaller } from '../src/fs-group/walk-volume.ts'
import { ERRAND_HANDLE } from '../src/host/errand.ts'
import type { Handle } from '../src/host/host.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { writeAll } from './streams.ts'

/**
 * Runs an errand for the process that has started this one, and ends with it.
 * @returns false where nobody has handed it what to work on
 */
export function runErrand(): boolean {
  if (!isHanded()) return false
  const { stdin } = process
  const end = () => process.exit(1)
  const say = (line: string) => {
    if (!writeAll(`${line}\n`)) end()
  }
  let order = ''
  const read = (text: string) => {
    order += text
    if (!order.includes('\n')) return
    stdin.off('data', read)
    // What comes is its end alone, of which nobody is told who does not read.
    stdin.on('data', () => {})
    void walkForCaller(linuxHost, ERRAND_HANDLE as Handle, order, say).then(() => process.exit(0), end)
  }
  stdin.setEncoding('utf8').on('data', read).on('end', end).on('error', end)
  return true
}

/** No caller but modekeep hands on a directory by this number. */
function isHanded(): boolean {
  try {
    return fstatSync(ERRAND_HANDLE).isDirectory()
  } catch {
    return false
  }
}
