import { tolerateSystemErrors } from '../file-error.ts'
import { errorCode, formatDeviceId, type Handle, hasDisk } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { listBtrfsDevices } from './backing.ts'
import { findNodePath, readNodeNumbers } from './block-node.ts'
import { deferCloseFd } from './open.ts'
import { statUnsynced } from './statx.ts'

const { O_EXCL, O_NONBLOCK, O_RDONLY } = fs.constants

export function listDevices(handle: Handle): string[] {
  const { device } = statUnsynced(handle)
  if (hasDisk(device)) return [addSequence(formatDeviceId(device))]
  const directories = tolerateSystemErrors(() => listBtrfsDevices(handle)) ?? []
  if (directories === 'in doubt') return []
  return directories.flatMap((directory) => {
    const numbers = tolerateSystemErrors(() => readText(`${directory}/dev`).trim())
    return numbers === undefined ? [] : [addSequence(numbers)]
  })
}

/** Returns the `major:minor` of a name from `listDevices`. */
export function parseDeviceNumbers(name: string): string {
  return name.split(' ', 1)[0] ?? ''
}

/**
 * Since Linux 5.15 the kernel numbers each disk and each attachment of a loop device (`diskseq`). Older kernels only
 * have the path of a loop device's file.
 */
function addSequence(numbers: string): string {
  const directory = `/sys/dev/block/${numbers}`
  for (const file of ['diskseq', '../diskseq', 'loop/backing_file']) {
    const sequence = tolerateSystemErrors(() => readText(`${directory}/${file}`).trim())
    if (sequence) return `${numbers} ${sequence}`
  }
  return numbers
}

/**
 * A mounted file system claims its device, as every exclusive open does, and the kernel rejects a second claim. This
 * claim ends at once. Other readers of the device do not conflict.
 */
export function isClaimed(name: string): boolean {
  if (addSequence(parseDeviceNumbers(name)) !== name) return false
  const numbers = parseDeviceNumbers(name)
  try {
    const device = fs.openSync(findNodePath(numbers), O_RDONLY | O_EXCL | O_NONBLOCK)
    using _ = deferCloseFd(device)
    if (readNodeNumbers(device as Handle) === numbers) return false
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    if (/^(ENXIO|ENODEV|ENOMEDIUM)$/.test(code)) return false
    if (code === 'EBUSY') return addSequence(numbers) === name && !isUsedByDevice(numbers)
  }
  // A container may lack the node's /dev. AUTOCLEAR detaches a loop device after its last user.
  return fs.existsSync(`/sys/dev/block/${numbers}/loop`)
}

/** Checks whether a device mapper or RAID device uses it. */
function isUsedByDevice(numbers: string): boolean {
  return (tolerateSystemErrors(() => fs.readdirSync(`/sys/dev/block/${numbers}/holders`)) ?? []).length > 0
}
