import { parseArgs } from 'node:util'

export const FILE_SYSTEMS = ['ext4', 'tmpfs', 'xfs'] as const
export type FileSystem = (typeof FILE_SYSTEMS)[number]

/** Where the targets hold. */
export const HEADLINE = { fileSystem: 'ext4', files: 200_000 } as const
const DEFAULT_SIZES = [1000, 10_000, 100_000]

export interface Options {
  help: boolean
  /** Count system calls of a repeated mount; nothing is timed. */
  profile: boolean
  /** Only a node with few mounts and one with many; otherwise they come after the trees. */
  node: boolean
  /** Results on stdout as JSON, not as a table. */
  json: boolean
  /** A million files too. */
  full: boolean
  fileSystems: FileSystem[]
  /** Files per tree on a file system, ascending. */
  sizes(fileSystem: FileSystem): number[]
  rounds: number
}

export const HELP = `npm run bench -- [options]

Times modekeep against kubelet's own walk and others, on the same trees. Needs root; takes some minutes.

  --sizes 1000,200000   files per tree (default 1000,10000,100000, and 200000 on ext4)
  --full                1,000,000 files too
  --fs ext4,tmpfs,xfs   file systems (default all three)
  --rounds 3            times each walk is measured; medians are shown
  --node                only calls on a node with 50 mounts and on one with 5,000, which come last otherwise
  --json                results as JSON on stdout
  --profile             count the system calls of a repeated mount at 10 and 100,000 files instead
                        (with --full, at 1,000,000)
  --help                this text

Kubelet's walk is built from Debian's source package "kubernetes" once (2 minutes, needs network)
and kept in ~/.cache/modekeep. What a machine cannot build or make is reported as absent, with the reason.
`

/**
 * @throws {Error} naming the option and what it got
 */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      node: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      fs: { type: 'string', default: FILE_SYSTEMS.join() },
      sizes: { type: 'string', default: '' },
      rounds: { type: 'string', default: '3' },
    },
  })
  const given = values.sizes ? values.sizes.split(',').map((size) => positive('--sizes', size)) : undefined
  return {
    help: values.help,
    profile: values.profile,
    node: values.node,
    json: values.json,
    full: values.full,
    fileSystems: values.fs.split(',').map(fileSystem),
    sizes(fileSystem) {
      const sizes = [
        ...(given ?? DEFAULT_SIZES),
        ...(!given && fileSystem === HEADLINE.fileSystem ? [HEADLINE.files] : []),
      ]
      if (values.full) sizes.push(1_000_000)
      return [...new Set(sizes)].sort((a, b) => a - b)
    },
    rounds: positive('--rounds', values.rounds),
  }
}

function positive(option: string, text: string): number {
  if (!/^[1-9]\d{0,7}$/.test(text)) throw new Error(`${option}: expected whole numbers from 1 on, got "${text}"`)
  return Number(text)
}

function fileSystem(text: string): FileSystem {
  const known = FILE_SYSTEMS.find((name) => name === text)
  if (!known) throw new Error(`--fs: expected ${FILE_SYSTEMS.join(', ')}, got "${text}"`)
  return known
}
