import { dirname } from 'node:path'
import type { Diagnosis } from '../../host/diagnosis.ts'
import type { Host } from '../../host/host.ts'
import { type CheckFinding, findingsOf } from './findings.ts'
import { lookAtPath } from './permissions.ts'

const { ok, warning, fault } = findingsOf('state')

// The journal of a million inodes takes about this much (docs/ownership.md); below the second not even records fit.
const ENOUGH_BYTES = 256 * 2 ** 20
const LEAST_BYTES = 4 * 2 ** 20
const ENOUGH_INODES = 1000
const LEAST_INODES = 10

/** Where the disk of the state directory is full, walks stop before they change anything, and restores stay pending. */
export function spaceFindings(host: Host, { space }: Diagnosis, stateDir: string): CheckFinding[] {
  let place = stateDir
  while (place !== '/' && lookAtPath(host, place) === undefined) place = dirname(place)
  const { bytes, inodes } = space(place)
  const left = `${Math.floor(bytes / 2 ** 20)} MiB${inodes === undefined ? '' : ` and ${inodes} inodes`}`
  const text = `the file system of ${stateDir} has ${left} left`
  const remedy = `make room there, or move stateDir to another disk`
  if (bytes < LEAST_BYTES || (inodes ?? LEAST_INODES) < LEAST_INODES) return [fault(text, remedy)]
  if (bytes < ENOUGH_BYTES || (inodes ?? ENOUGH_INODES) < ENOUGH_INODES) return [warning(text, remedy)]
  return [ok(text)]
}
