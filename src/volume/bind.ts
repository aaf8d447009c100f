import { createOptionFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, useHandleOrClose } from '../kernel/host.ts'
import { readSubmounts } from '../kernel/mount-table/submounts.ts'
import { openSubPath } from '../kernel/path/open-sub-path.ts'
import type { VolumeKind } from './kind/kind.ts'
import { findOptionFaults, type OptionRules } from './kind/options.ts'
import { findSourceFaults, getNodeSourcePath, openNodeSource } from './kind/source-path.ts'

const NO_OPTION_RULES: OptionRules = new Map()

/**
 * A directory of the node or, with a subPath, a part of it of any type. Mounts below it are excluded unless the pod
 * requested them and rules allow them.
 */
export const bindKind: VolumeKind = {
  name: 'bind',
  persistent: true,
  walk: true,
  root: 'source',
  optionRules: () => NO_OPTION_RULES,

  faults: (request, config) => [
    ...findSourceFaults(request, config),
    ...findOptionFaults('bind', request.mountOptions, NO_OPTION_RULES),
  ],

  openSource(host, { source, subPath }) {
    const opened = openNodeSource(host, getNodeSourcePath(source))
    if (subPath === undefined) return opened
    const { inodes } = host
    using _ = deferHandleClose(inodes, opened.handle)
    // The mount is made from this handle, so no name is looked up again.
    return useHandleOrClose(inodes, openSubPath(inodes, opened.handle, subPath), (handle) => {
      return { handle, stat: inodes.stat(handle), path: assertUtf8Path(inodes.pathOf(handle), subPath) }
    })
  },

  openTree({ host, request, source, includedMounts }) {
    if (source === undefined) throw new Error(`no source for ${request.directory}`)
    if (includedMounts === undefined) return host.mounts.cloneTree(source.handle)
    return useHandleOrClose(host.inodes, host.mounts.cloneTree(source.handle, true), (tree) => {
      const now = readSubmounts(host, source.handle, source.path)
      if (now.length === includedMounts.size && now.every(({ id }) => includedMounts.has(id))) return tree
      throw Refusal.of(
        'option-contradiction',
        `what is mounted inside of source ${quoteValue(source.path)} changed while it was mounted`,
        'kubelet tries again',
      )
    })
  },
}

/** Records store the path, and a restore finds the volume by it. */
function assertUtf8Path(path: string, subPath: string): string {
  if (!path.includes('\ufffd')) return path
  throw new Refusal(
    createOptionFault(
      'sub-path',
      'subPath',
      `is ${quoteValue(subPath)}: it leads to ${quoteValue(path)}, whose name is not valid UTF-8`,
      'rename it',
    ),
  )
}
