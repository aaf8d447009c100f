import { FAILED, OK } from '../src/operator/operate.ts'
import { writeAll } from './streams.ts'

const STDERR = 2

/** Ends a probe in words, as kubelet's event shows them. @param why it fails; undefined: it does not @returns the exit status */
export function reportProbe(why: string | undefined): number {
  if (why === undefined) return OK
  writeAll(`${why}\n`, STDERR)
  return FAILED
}
