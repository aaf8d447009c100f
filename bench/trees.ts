import type { FileSystem, Options } from './options.ts'

/** How many names a directory has, and how many names an inode. */
export const SHAPES = {
  'directories of 1,000': { perDirectory: 1000, links: 1 },
  'one directory': { perDirectory: Number.POSITIVE_INFINITY, links: 1 },
  'directories of five': { perDirectory: 5, links: 1 },
  'two links to each inode': { perDirectory: 1000, links: 2 },
  'links to one inode': { perDirectory: 1000, links: Number.POSITIVE_INFINITY },
} as const
export type Shape = keyof typeof SHAPES

/** A tree of empty files, on a file system of its own. */
export interface Tree {
  fileSystem: FileSystem
  shape: Shape
  /** Names of files. */
  files: number
}

export const nameOf = ({ fileSystem, shape, files }: Tree): string =>
  `${fileSystem}, ${files.toLocaleString('en')} files, ${shape}`

export const usual = (fileSystem: FileSystem, files: number): Tree => ({
  fileSystem,
  shape: 'directories of 1,000',
  files,
})

/** What the memory of a large tree is compared with. */
export const SMALL = 10_000
export const MILLION = 1_000_000

/** For the targets, to be reported, or to be reported of modekeep alone. */
export type Use = 'targets' | 'report' | 'modekeep'

/** Everything that is measured, the targets' trees first. */
export function treesFor({ files, full, headline }: Pick<Options, 'files' | 'full' | 'headline'>): [Use, Tree][] {
  const sizes = (...all: number[]) => [...new Set(full ? [...all, MILLION] : all)].sort((a, b) => a - b)
  const targets = sizes(SMALL, files).map((size): [Use, Tree] => ['targets', usual('ext4', size)])
  if (headline) return targets
  const all: [Use, Tree][] = [
    ...targets,
    ['report', usual('ext4', 1000)],
    ...(['tmpfs', 'xfs'] as const).flatMap((fileSystem) =>
      sizes(1000, SMALL, files).map((size): [Use, Tree] => ['report', usual(fileSystem, size)]),
    ),
    ['report', { fileSystem: 'ext4', shape: 'one directory', files: full ? MILLION : files }],
    ['report', { fileSystem: 'ext4', shape: 'directories of five', files: full ? MILLION : files }],
    // An inode of ext4 has at most 65,000 links.
    ['modekeep', { fileSystem: 'tmpfs', shape: 'two links to each inode', files: full ? 2 * MILLION : files }],
    ['modekeep', { fileSystem: 'tmpfs', shape: 'links to one inode', files: full ? 2 * MILLION : files }],
  ]
  const names = all.map(([, tree]) => nameOf(tree))
  return all.filter(([, tree], index) => names.indexOf(nameOf(tree)) === index)
}
