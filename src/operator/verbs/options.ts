import { quoted } from '../../refusal/refusal.ts'
import { parseGroup } from '../../request/fs-group.ts'
import { isVolumeIdentity } from '../../store/volume-record.ts'

/** How an option is written. What it does is told by each verb that has it (verbs/). */
export interface OptionForm {
  short?: string
  /** What help calls its value; undefined: it has none. */
  value?: string
  choices?: readonly string[]
  /** A value, in words for who left it out. */
  example?: string
  /** What completion offers for it. */
  completes?: 'directories'
  /** @returns what is wrong with a value */
  fault?(value: string): string | undefined
}

const group = (value: string) =>
  typeof parseGroup(value) === 'number'
    ? undefined
    : 'a group is a decimal number from 0 to 4294967294, without sign or leading zeros'

// Their list is one message of gRPC, of 4 MB at most; this is well below, and more containers than a node runs.
const MOST_DEVICES = 10_000

const devices = (value: string) =>
  /^[1-9]\d{0,4}$/.test(value) && Number(value) <= MOST_DEVICES ? undefined : `write a number from 1 to ${MOST_DEVICES}`

const absolute = (value: string) => (value.startsWith('/') ? undefined : 'write an absolute path')

const filled = (value: string) => (value === '' ? 'write a path' : undefined)

const count = (value: string) => (/^(0|[1-9]\d{0,8})$/.test(value) ? undefined : 'write how many, such as 20')

// kubelet's own are UUIDs, but those of static pods' files are hashes.
const pod = (value: string) =>
  /^[A-Za-z0-9][A-Za-z0-9.-]*(\/[A-Za-z0-9][A-Za-z0-9.-]*)?$/.test(value)
    ? undefined
    : "write the pod's UID, or NAMESPACE/NAME"

const volume = (value: string) => (isVolumeIdentity(value) ? undefined : 'write a volume as "modekeep status" names it')

const pluginDirectory = (value: string) => (value === '/' ? 'write a directory below it' : absolute(value))

const sum = (value: string) => (/^[0-9a-f]{64}$/i.test(value) ? undefined : 'write 64 hexadecimal digits')

const path = { value: 'FILE', example: 'a path', fault: filled } as const
const directory = { value: 'DIR', example: 'a directory', completes: 'directories', fault: filled } as const

export const OPTIONS = {
  fsgroup: { value: 'G', example: 'a group, such as 2000,', fault: group },
  'group-access': { value: 'A', choices: ['keep', 'grant'] },
  'fs-group-change-policy': { value: 'P', choices: ['OnRootMismatch', 'Always'] },
  'dry-run': {},
  force: {},
  watch: {},
  'kubelet-subpaths': {},
  'kubelet-dir': {
    value: 'DIR',
    example: 'a path, such as /var/lib/kubelet,',
    completes: 'directories',
    fault: absolute,
  },
  follow: { short: 'f' },
  lines: { short: 'n', value: 'N', example: 'a number, such as 20,', fault: count },
  pod: { value: 'UID', example: "a pod's UID, or NAMESPACE/NAME,", fault: pod },
  forget: { value: 'VOLUME', example: 'a volume as "modekeep status" names it', fault: volume },
  devices: { value: 'N', example: 'a number, such as 50,', fault: devices },
  prometheus: {},
  output: {
    value: 'FILE',
    example: 'a path, such as /var/lib/node_exporter/modekeep.prom,',
    fault: absolute,
  },
  binary: path,
  sha256: { value: 'SUM', example: '64 hexadecimal digits', fault: sum },
  'plugin-dir': {
    value: 'DIR',
    example: 'a path, such as /var/lib/kubelet/volumeplugins,',
    completes: 'directories',
    fault: pluginDirectory,
  },
  config: path,
  purge: {},
  root: directory,
  'try-in': directory,
  proc: directory,
  man: {},
  json: {},
  help: { short: 'h' },
} as const satisfies Readonly<Record<string, OptionForm>>

export type OptionName = keyof typeof OPTIONS

export function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name)
}

export function formOf(name: OptionName): OptionForm {
  return OPTIONS[name]
}

/** What is wrong with an option as it was given. */
export function valueFaults(name: OptionName, value: string | undefined): string[] {
  const { value: takes, choices, example, fault } = formOf(name)
  if (takes === undefined) return value === undefined ? [] : [`--${name} takes no value: write it alone`]
  if (value === undefined) return [`--${name} has no value: write ${choices ? choices.join(' or ') : example} after it`]
  if (choices) return choices.includes(value) ? [] : [`--${name} is ${quoted(value)}: use ${choices.join(' or ')}`]
  const wrong = fault?.(value)
  return wrong === undefined ? [] : [`--${name} is ${quoted(value)}: ${wrong}`]
}
