import type { Handle, Host } from '../host/host.ts'
import { openInside, subPathFaults } from '../path/inside.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'
import { type OptionRules, optionFaults } from './kind/options.ts'
import { openNodeDirectory, pathOf, sourceFaults } from './kind/source-path.ts'

const NONE: OptionRules = new Map()

/** A directory of the node, or with a subPath a part of it, of any type. What is mounted below it stays out. */
export const bind: VolumeKind = {
  name: 'bind',
  persistent: true,
  walk: true,
  root: 'source',
  optionRules: () => NONE,

  faults(request, config) {
    const { subPath, mountOptions } = request
    return [
      ...sourceFaults(request, config),
      ...(subPath === undefined ? [] : subPathFaults(subPath)),
      ...optionFaults('bind', mountOptions, NONE, config),
    ]
  },

  openSource(host, { source, subPath }) {
    const path = pathOf(source)
    const opened = openNodeDirectory(host, path)
    return subPath === undefined ? { ...opened, path } : partOf(host, opened.handle, subPath)
  },

  openTree({ host, request, source }) {
    if (source === undefined) throw new Error(`no source for ${request.directory}`)
    return host.mounts.cloneTree(source.handle)
  },
}

/** What was resolved is what is mounted: it is held, and no name is looked up again. */
function partOf({ inodes }: Host, root: Handle, subPath: string): OpenedSource {
  try {
    const handle = openInside(inodes, root, subPath)
    try {
      return { handle, stat: inodes.stat(handle), path: textOf(inodes.pathOf(handle), subPath) }
    } catch (error) {
      inodes.close(handle)
      throw error
    }
  } finally {
    inodes.close(root)
  }
}

/** Records name it, and a restore finds it by that. */
function textOf(path: string, subPath: string): string {
  if (!path.includes('\ufffd')) return path
  throw new Refusal(
    `option "subPath" is ${quoted(subPath)}: it leads to ${quoted(path)}, whose name is not valid UTF-8: rename it`,
  )
}
