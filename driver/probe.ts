import { FAILED, OK } from '../src/operator/operate.ts'
import { writeAll } from './streams.ts'

const STDERR = 2

/** Prints why a probe failed; kubelet shows the text in an event. @param reason undefined: success @returns the exit status */
export function reportProbe(reason: string | undefined): number {
  if (reason === undefined) return OK
  writeAll(`${reason}\n`, STDERR)
  return FAILED
}
