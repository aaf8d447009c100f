import { parseArgs } from 'node:util'

export type FileSystem = 'ext4' | 'tmpfs' | 'xfs'

export const PARTS = ['walks', 'calls', 'system-calls', 'mounts'] as const
export type Part = (typeof PARTS)[number]
/** What the targets need. */
const HEADLINE_PARTS: readonly Part[] = ['walks', 'calls', 'system-calls']

export interface Options {
  help: boolean
  /** Only what the table of targets needs. */
  headline: boolean
  /** Only what `init` and a repeated mount evaluate. */
  modules: boolean
  /** Only what each of a walk's system calls costs. */
  kernelCalls: boolean
  /** Only what a repeated call costs the CSI server. */
  csi: boolean
  /** Only first mounts, from one file to a million, for the chart. */
  firstMount: boolean
  /** Only what calls for small volumes cost. */
  small: boolean
  /** Only what a container costs the runtime's plugin. */
  nri: boolean
  /** Only how much memory each container of the manifests needs. */
  memory: boolean
  /** Only pods on volumes of another driver. */
  anyVolume: boolean
  /** A million files too. */
  full: boolean
  parts: readonly Part[]
  /** Files of the tree for which the targets hold. */
  files: number
  /** Rounds on that tree; others have fewer. */
  rounds: number
}

export const HELP = `npm run bench -- [options]

Measures modekeep against kubelet's own walk and others, on the same trees, and says which targets are met
(docs/performance.md). Needs root, a C compiler and a machine that does nothing else.

  --headline       only what the table of targets needs, in some minutes
  --full           1,000,000 files too: takes much longer, and gigabytes of memory
  --only PARTS     of walks, calls (starts and repeated mounts), system-calls (of a repeated mount; also on a busy
                   machine), mounts (calls on a node with 5,000)
  --modules        only which files init and a repeated mount evaluate, how long each takes, and what they load of
                   Node's own modules
  --kernel-calls   only what each system call of a walk costs
  --csi            only what a call that kubelet repeats costs \`modekeep csi\`, also on a busy machine
  --small          only what kubelet's calls for small volumes cost, each made by a process of its own and by the ready worker of
                   \`modekeep heal --watch --answer-calls\`, beside kubelet's walk and a driver in bash
  --first-mount    only a volume's first mount by each way to its group, from one file to a million, with a chart: ten minutes
  --nri            only what a container costs \`modekeep nri\`: without a volume that is asked for, with one of 1 file, with one of
                   --files, and a hundred at once, also with each processor busy
  --memory         only how much memory each container of the manifests needs, idle and called a hundred times at once, and
                   \`modekeep nri\` while its workers are stuck
  --any-volume     only pods on volumes of another driver: from the volume to the running container, beside kubelet's walk
  --files 200000   files of the tree for which the targets hold; fewer for a quick look
  --rounds 5       how often each walk on that tree is measured (others: twice at most); medians are shown
  --help           this text

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
      headline: { type: 'boolean', default: false },
      modules: { type: 'boolean', default: false },
      'kernel-calls': { type: 'boolean', default: false },
      csi: { type: 'boolean', default: false },
      small: { type: 'boolean', default: false },
      'first-mount': { type: 'boolean', default: false },
      nri: { type: 'boolean', default: false },
      memory: { type: 'boolean', default: false },
      'any-volume': { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      only: { type: 'string' },
      files: { type: 'string', default: '200000' },
      rounds: { type: 'string', default: '5' },
    },
  })
  const { help, headline, modules, csi, small, nri, memory, full, only } = values
  return {
    help,
    headline,
    modules,
    kernelCalls: values['kernel-calls'],
    csi,
    firstMount: values['first-mount'],
    small,
    nri,
    memory,
    anyVolume: values['any-volume'],
    full,
    parts: only?.split(',').map(part) ?? (headline ? HEADLINE_PARTS : PARTS),
    files: positive('--files', values.files),
    rounds: positive('--rounds', values.rounds),
  }
}

function positive(option: string, text: string): number {
  if (!/^[1-9]\d{0,7}$/.test(text)) throw new Error(`${option}: expected a whole number from 1 on, got "${text}"`)
  return Number(text)
}

function part(text: string): Part {
  const known = PARTS.find((name) => name === text)
  if (!known) throw new Error(`--only: expected ${PARTS.join(', ')}, got "${text}"`)
  return known
}
