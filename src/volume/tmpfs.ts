import { SystemError } from '../host/host.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { VolumeKind } from './kind/kind.ts'
import { freshFaults, NUMBER, type OptionRules, optionFaults, ownOptions, rule } from './kind/options.ts'

/** tmpfs(5) */
const OPTIONS: OptionRules = new Map([
  rule('size=64m', /[1-9][0-9]{0,14}[kmg]?|[1-9][0-9]?%|100%/i),
  rule('nr_inodes=10k', /[1-9][0-9]{0,11}[kmg]?/i),
  rule('mode=0770', /[0-7]{3,4}/),
  rule('uid=1000', NUMBER),
  rule('gid=1000', NUMBER),
])

/** A new, empty file system in memory; gone with its mount. */
export const tmpfs: VolumeKind = {
  name: 'tmpfs',
  persistent: false,
  walk: true,
  root: 'file system',
  optionRules: () => OPTIONS,

  faults: (request) => [...optionFaults('tmpfs', request.mountOptions, OPTIONS), ...freshFaults('tmpfs', request)],

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
