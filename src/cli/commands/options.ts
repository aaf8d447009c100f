import { parseGroup } from '../../config/option-faults.ts'
import { quoted } from '../../errors/refusal.ts'
import { mayBeginVolumeId } from '../../state/volume-id.ts'

/** The syntax of an option, also for node's parseArgs. Its description is in the verbs that take it. */
interface OptionForm {
  type: 'boolean' | 'string'
  short?: string
  /** The value in the notation of the help: a placeholder, or words to choose from. */
  value?: string
  /** An example for the message about a missing value. */
  example?: string
  /** @returns the fault of a value; undefined: valid */
  fault?(value: string): string | undefined
}

type Fault = NonNullable<OptionForm['fault']>

const group = (value: string) =>
  typeof parseGroup(value) === 'number'
    ? undefined
    : 'a group is a decimal number from 0 to 4294967294, without sign or leading zeros'

const volume = (value: string) =>
  isVolumePrefix(value) ? undefined : 'write a volume as "modekeep status" names it, or the beginning of its name'
const pluginDirectory = (value: string) => (value === '/' ? 'write a directory below it' : absolute(value))
const unless = (form: RegExp, fault: string) => (value: string) => (form.test(value) ? undefined : fault)

// gRPC limits the message with their list to 4 MB. This maximum is well below, and exceeds the containers of a node.
const devices = unless(/^([1-9]\d{0,3}|10000)$/, 'write a number from 1 to 10000')
const absolute = unless(/^\//, 'write an absolute path')
const filled = unless(/./s, 'write a path')
const count = unless(/^(0|[1-9]\d{0,8})$/, 'write how many, such as 20')

// UIDs of pods are UUIDs, but those of static pods are hashes.
const pod = unless(
  /^[A-Za-z0-9][A-Za-z0-9.-]*(\/[A-Za-z0-9][A-Za-z0-9.-]*)?$/,
  "write the pod's UID, or NAMESPACE/NAME",
)
// RFC 1123 label, like the names of namespaces.
const namespace = unless(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'write the name of a namespace')
const since = (value: string) =>
  parseDuration(value) === undefined ? 'write how long ago, such as 1h, 30m, 2d or 1h30m' : undefined
// CSI: GetPluginInfoResponse.name; in Kubernetes the CSIDriver object has it too, in lower case.
const driver = unless(
  /^(?=.{1,63}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
  'write up to 63 of a-z, 0-9, - and ., the first and the last a letter or a digit',
)
const node = unless(/^[!-~]{1,256}$/, 'write the name of the node, up to 256 letters without a space')
const server = unless(/^\S+:\S+$/, 'write HOST:PORT of the API server')
const listening = (value: string) =>
  parseListenAddress(value) ? undefined : 'write ADDRESS:PORT, or :PORT for every address, with a port from 1 to 65535'
// containerd/nri pkg/api/plugin.go, CheckPluginIndex.
const index = unless(/^\d\d$/, 'write two digits, such as 10')
const sum = unless(/^[0-9a-f]{64}$/i, 'write 64 hexadecimal digits')

const flag = (short?: string) => ({ type: 'boolean', ...(short && { short }) }) as const

/** @param example an example of a path */
const file = (fault: Fault, example = 'a path') => ({ type: 'string', value: 'FILE', example, fault }) as const
const directory = (fault: Fault, example = 'a directory') => ({ type: 'string', value: 'DIR', example, fault }) as const

const FORMS = {
  fsgroup: { type: 'string', value: 'G', example: 'a group, such as 2000,', fault: group },
  'group-access': { type: 'string', value: 'keep|grant' },
  'fs-group-change-policy': { type: 'string', value: 'OnRootMismatch|Always' },
  'dry-run': flag(),
  force: flag(),
  yes: flag(),
  watch: flag(),
  'kubelet-subpaths': flag(),
  listen: { type: 'string', value: 'ADDRESS:PORT', example: 'where, such as 127.0.0.1:9808,', fault: listening },
  metrics: flag(),
  namespace: { type: 'string', short: 'n', value: 'NAMESPACE', example: 'a namespace', fault: namespace },
  format: { type: 'string', short: 'o', value: 'json|yaml|wide|name' },
  since: { type: 'string', value: 'TIME', example: 'how long ago, such as 1h or 30m,', fault: since },
  failed: flag(),
  'kubelet-dir': directory(absolute, 'a path, such as /var/lib/kubelet,'),
  'driver-name': { type: 'string', value: 'NAME', example: 'a name, such as modekeep.csi,', fault: driver },
  socket: { type: 'string', value: 'PATH', example: 'a path, such as /var/run/nri/nri.sock,', fault: absolute },
  'cri-socket': {
    type: 'string',
    value: 'PATH',
    example: 'a path, such as /run/containerd/containerd.sock,',
    fault: absolute,
  },
  'plugin-index': { type: 'string', value: 'NN', example: 'two digits, such as 10,', fault: index },
  'node-id': { type: 'string', value: 'NAME', example: 'the name of the node', fault: node },
  'api-server': { type: 'string', value: 'HOST:PORT', example: 'where it is, such as 10.96.0.1:443,', fault: server },
  'api-access': directory(absolute, "the directory of a service account's token and ca.crt"),
  probe: flag(),
  follow: flag('f'),
  lines: { type: 'string', short: 'n', value: 'N', example: 'a number, such as 20,', fault: count },
  pod: { type: 'string', value: 'POD', example: "a pod's UID, or NAMESPACE/NAME,", fault: pod },
  forget: { type: 'string', value: 'VOLUME', example: 'a volume as "modekeep status" names it', fault: volume },
  devices: { type: 'string', value: 'N', example: 'a number, such as 50,', fault: devices },
  prometheus: flag(),
  output: file(filled, 'a path, such as /var/lib/node_exporter/modekeep.prom,'),
  at: directory(filled),
  binary: file(filled),
  sha256: { type: 'string', value: 'SUM', example: '64 hexadecimal digits', fault: sum },
  'plugin-dir': directory(pluginDirectory, 'a path, such as /var/lib/kubelet/volumeplugins,'),
  config: file(filled),
  purge: flag(),
  root: directory(filled),
  'try-in': directory(filled),
  'any-kubelet': flag(),
  proc: directory(filled),
  man: flag(),
  offer: { type: 'string', value: 'namespaces|pods|mounts|volumes|codes' },
  json: flag(),
  help: flag('h'),
} as const satisfies Readonly<Record<string, OptionForm>>

export type OptionName = keyof typeof FORMS

export const OPTIONS: Readonly<Record<OptionName, OptionForm>> = FORMS

const UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** @param text such as `1h30m`: days, hours, minutes and seconds, in this order @returns milliseconds, undefined for none */
export function parseDuration(text: string): number | undefined {
  if (!/^(?=\d)(\d{1,6}d)?(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?$/.test(text)) return undefined
  const parts = text.matchAll(/(\d+)([dhms])/g)
  return [...parts].reduce((total, [, count, unit = 's']) => total + Number(count) * (UNIT_MS[unit] ?? 0), 0)
}

/** Lists the spellings of an option: `-f` and `--follow`. */
export function listSpellings(name: OptionName): string[] {
  const { short } = OPTIONS[name]
  return [...(short ? [`-${short}`] : []), `--${name}`]
}

/** Parses the words to choose from in the notation of the help. Placeholders, in capitals, are omitted. */
export function parseChoices(operand = ''): string[] {
  return operand.split(/[| ]/).filter((word) => word !== word.toUpperCase())
}

/** Returns the faults of an option's value. */
export function checkOptionValue(name: OptionName, given: string | undefined): string[] {
  const { type, value, example, fault } = OPTIONS[name]
  if (type === 'boolean') return given === undefined ? [] : [`--${name} takes no value: write it alone`]
  const choices = parseChoices(value)
  const either = choices.join(' or ')
  if (given === undefined) return [`--${name} has no value: write ${either || example} after it`]
  const wrong = choices.length > 0 && !choices.includes(given) ? `use ${either}` : fault?.(given)
  return wrong === undefined ? [] : [`--${name} is ${quoted(given)}: ${wrong}`]
}

/** An address that a server listens at. @property address undefined: every address of this network namespace */
export interface ListenAddress {
  address: string | undefined
  port: number
}

/** Parses `ADDRESS:PORT` or `:PORT`; an IPv6 address has brackets. Returns undefined for any other text. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const [, address, digits] = /^(\[[0-9A-Fa-f:.]+\]|\d+(?:\.\d+){3})?:([1-9]\d{0,4})$/.exec(text) ?? []
  const isAddress = address === undefined || URL.canParse(`http://${address}`)
  if (digits === undefined || Number(digits) > 65_535 || !isAddress) return undefined
  return { address: address?.replace(/^\[|\]$/g, ''), port: Number(digits) }
}

/** Removes the ellipsis of a word that was copied from a narrow table. */
export function trimEllipsis(word: string): string {
  // No regular expression: the build keeps its letters beyond ASCII in bytes that the executable reads as Latin-1.
  return word.endsWith('…') ? word.slice(0, -1) : word
}

/** Like `mayBeginVolumeId`, also for a word that was copied with its ellipsis. */
export function isVolumePrefix(text: string): boolean {
  return mayBeginVolumeId(trimEllipsis(text))
}
