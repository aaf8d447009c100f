import { type NodeConfig, parseSize } from '../config/defaults.ts'
import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { SystemError } from '../kernel/host.ts'
import type { VolumeKind } from './kind/kind.ts'
import {
  createLazyOptionRules,
  createMountOptionsFault,
  createValueRule,
  DECIMAL_NUMBER_FORM,
  filterFileSystemOptions,
  findFreshVolumeFaults,
  findOptionFaults,
  parseOptionName,
} from './kind/options.ts'

/** tmpfs(5) */
const TMPFS_OPTION_RULES = createLazyOptionRules(() => [
  createValueRule('size=64m', /[1-9][0-9]{0,14}[kmg]?/i),
  createValueRule('nr_inodes=10k', /[1-9][0-9]{0,11}[kmg]?/i),
  createValueRule('mode=0770', /[0-7]{3,4}/),
  createValueRule('uid=1000', DECIMAL_NUMBER_FORM),
  createValueRule('gid=1000', DECIMAL_NUMBER_FORM),
])

/** An inode takes about this much of the node's memory, which `size` does not limit (mm/shmem.c). */
const TMPFS_BYTES_PER_INODE = 1024

function computeTmpfsLimits(tmpfsMaxSize: string): { size: number; nr_inodes: number } {
  const size = parseSize(tmpfsMaxSize) ?? 0
  return { size, nr_inodes: Math.floor(size / TMPFS_BYTES_PER_INODE) }
}

function findTmpfsSizeFaults(options: readonly string[], { tmpfsMaxSize }: NodeConfig): Fault[] {
  const limits = computeTmpfsLimits(tmpfsMaxSize)
  const remedy = `have tmpfsMaxSize ("${tmpfsMaxSize}") raised in the node's modekeep configuration`
  return options.flatMap((option) => {
    const name = parseOptionName(option)
    if (name !== 'size' && name !== 'nr_inodes') return []
    const requestedValue = parseSize(option.slice(name.length + 1)) ?? 0
    if (requestedValue <= limits[name]) return []
    const most = name === 'size' ? tmpfsMaxSize : `${limits.nr_inodes}, one for each KiB of tmpfsMaxSize,`
    return [
      createMountOptionsFault(
        `has ${quoteValue(option)}, but a tmpfs may have ${most} on this node`,
        `use less, or ${remedy}`,
      ),
    ]
  })
}

/** Adds the node's limits where the pod set none: the kernel's defaults are half of the node's memory for each tmpfs. */
function addTmpfsLimits(options: readonly string[], tmpfsMaxSize: string): string[] {
  const limits = Object.entries(computeTmpfsLimits(tmpfsMaxSize))
  const missing = limits.filter(([name]) => !options.some((option) => parseOptionName(option) === name))
  return [...options, ...missing.map(([name, most]) => `${name}=${most}`)]
}

/** A new, empty file system in memory, which ends with its mount. */
export const tmpfsKind: VolumeKind = {
  name: 'tmpfs',
  hasNoSource: true,
  persistent: false,
  walk: true,
  root: 'file system',
  optionRules: TMPFS_OPTION_RULES,

  faults: (request, config) => [
    ...findOptionFaults('tmpfs', request.mountOptions, TMPFS_OPTION_RULES()),
    ...findTmpfsSizeFaults(request.mountOptions, config),
    ...findFreshVolumeFaults('tmpfs', request),
  ],

  openTree({ host, request: { mountOptions }, tmpfsMaxSize }) {
    try {
      return host.mounts.createTree('tmpfs', addTmpfsLimits(filterFileSystemOptions(mountOptions), tmpfsMaxSize))
    } catch (error) {
      // A context that failed once returns EBUSY from then on: the kernel's own message names the cause.
      const refused =
        error instanceof SystemError && error.syscall === 'fsconfig' && /^(EINVAL|EBUSY)$/.test(error.code)
      if (!refused) throw error
      throw new Refusal(
        createFault(
          'mount-options',
          `the kernel refuses mountOptions ${quoteValue(mountOptions.join(','))}`,
          undefined,
          (error as Error).message,
        ),
        { cause: error },
      )
    }
  },
}
