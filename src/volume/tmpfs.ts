import { SystemError } from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { sourceText } from '../request/source.ts'
import type { VolumeKind } from './kind/kind.ts'
import { type OptionRule, optionFaults, ownOptions } from './kind/options.ts'

const NUMBER = /^[a-z_]+=(0|[1-9][0-9]{0,9})$/

/** tmpfs(5) */
const OPTIONS: ReadonlyMap<string, OptionRule> = new Map([
  ['size', { pattern: /^size=([1-9][0-9]{0,14}[kmg]?|[1-9][0-9]?%|100%)$/i, example: 'size=64m' }],
  ['nr_inodes', { pattern: /^nr_inodes=[1-9][0-9]{0,11}[kmg]?$/i, example: 'nr_inodes=10k' }],
  ['mode', { pattern: /^mode=[0-7]{3,4}$/, example: 'mode=0770' }],
  ['uid', { pattern: NUMBER, example: 'uid=1000' }],
  ['gid', { pattern: NUMBER, example: 'gid=1000' }],
])

/** A new, empty file system in memory; gone with its mount. */
export const tmpfs: VolumeKind = {
  name: 'tmpfs',
  persistent: false,
  walk: true,
  root: 'file system',
  optionRules: () => OPTIONS,

  faults({ source, subPath, mountOptions }, config) {
    const faults = optionFaults('tmpfs', mountOptions, OPTIONS, config)
    const text = sourceText(source)
    if (text !== undefined && text !== 'tmpfs') {
      faults.push(`option "source" is ${quoted(text)}: a tmpfs has none, leave it out`)
    }
    if (subPath !== undefined)
      faults.push(`option "subPath" is ${quoted(subPath)}: a tmpfs is new and empty, leave it out`)
    return faults
  },

  openSource: () => undefined,

  openTree({ host, request: { mountOptions } }) {
    try {
      return host.mounts.createTree('tmpfs', ownOptions(mountOptions))
    } catch (error) {
      // A context that refused once answers EBUSY from then on: the kernel's own words say what it was.
      const refused =
        error instanceof SystemError && error.syscall === 'fsconfig' && /^(EINVAL|EBUSY)$/.test(error.code)
      if (!refused) throw error
      throw new Refusal(
        `the kernel refuses mountOptions ${quoted(mountOptions.join(','))}: ${(error as Error).message}`,
        { cause: error },
      )
    }
  },
}
