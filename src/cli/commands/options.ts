import { parseGroupId } from '../../config/option-faults.ts'
import { quoteValue } from '../../errors/refusal.ts'
import { isPlainVolumeIdPrefix } from '../../state/volume-id.ts'

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

type OptionValueCheck = NonNullable<OptionForm['fault']>

const checkGroupId = (value: string) =>
  typeof parseGroupId(value) === 'number'
    ? undefined
    : 'a group is a decimal number from 0 to 4294967294, without sign or leading zeros'

const checkVolumePrefix = (value: string) =>
  isVolumeIdPrefix(value) ? undefined : 'write a volume as "modekeep status" names it, or the beginning of its name'
const checkPluginDirectory = (value: string) =>
  value === '/' ? 'write a directory below it' : checkAbsolutePath(value)
const createPatternCheck = (form: RegExp, fault: string) => (value: string) => (form.test(value) ? undefined : fault)

// gRPC limits the message with their list to 4 MB. This maximum is well below, and exceeds the containers of a node.
const checkDeviceCount = createPatternCheck(/^([1-9]\d{0,3}|10000)$/, 'write a number from 1 to 10000')
const checkAbsolutePath = createPatternCheck(/^\//, 'write an absolute path')
const checkNonEmptyPath = createPatternCheck(/./s, 'write a path')
const checkLineCount = createPatternCheck(/^(0|[1-9]\d{0,8})$/, 'write how many, such as 20')

// UIDs of pods are UUIDs, but those of static pods are hashes.
const checkPodReference = createPatternCheck(
  /^[A-Za-z0-9][A-Za-z0-9.-]*(\/[A-Za-z0-9][A-Za-z0-9.-]*)?$/,
  "write the pod's UID, or NAMESPACE/NAME",
)
// RFC 1123 label, like the names of namespaces.
const checkNamespaceName = createPatternCheck(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'write the name of a namespace')
const checkDuration = (value: string) =>
  parseDuration(value) === undefined ? 'write how long ago, such as 1h, 30m, 2d or 1h30m' : undefined
// CSI: GetPluginInfoResponse.name; in Kubernetes the CSIDriver object has it too, in lower case.
const checkDriverName = createPatternCheck(
  /^(?=.{1,63}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
  'write up to 63 of a-z, 0-9, - and ., the first and the last a letter or a digit',
)
const checkNodeName = createPatternCheck(
  /^[!-~]{1,256}$/,
  'write the name of the node, up to 256 letters without a space',
)
const checkServerAddress = createPatternCheck(/^\S+:\S+$/, 'write HOST:PORT of the API server')
const checkListenAddress = (value: string) =>
  parseListenAddress(value) ? undefined : 'write ADDRESS:PORT, or :PORT for every address, with a port from 1 to 65535'
// containerd/nri pkg/api/plugin.go, CheckPluginIndex.
const checkPluginIndex = createPatternCheck(/^\d\d$/, 'write two digits, such as 10')
const checkSha256 = createPatternCheck(/^[0-9a-f]{64}$/i, 'write 64 hexadecimal digits')

const createFlagForm = (short?: string) => ({ type: 'boolean', ...(short && { short }) }) as const

/** @param example an example of a path */
const createFileForm = (fault: OptionValueCheck, example = 'a path') =>
  ({ type: 'string', value: 'FILE', example, fault }) as const
const createDirectoryForm = (fault: OptionValueCheck, example = 'a directory') =>
  ({ type: 'string', value: 'DIR', example, fault }) as const

const OPTION_FORMS = {
  fsgroup: { type: 'string', value: 'G', example: 'a group, such as 2000,', fault: checkGroupId },
  'group-access': { type: 'string', value: 'keep|grant' },
  'fs-group-change-policy': { type: 'string', value: 'OnRootMismatch|Always' },
  'dry-run': createFlagForm(),
  force: createFlagForm(),
  yes: createFlagForm(),
  watch: createFlagForm(),
  'kubelet-subpaths': createFlagForm(),
  listen: {
    type: 'string',
    value: 'ADDRESS:PORT',
    example: 'where, such as 127.0.0.1:9808,',
    fault: checkListenAddress,
  },
  metrics: createFlagForm(),
  'answer-calls': createFlagForm(),
  namespace: { type: 'string', short: 'n', value: 'NAMESPACE', example: 'a namespace', fault: checkNamespaceName },
  format: { type: 'string', short: 'o', value: 'json|yaml|wide|name' },
  since: { type: 'string', value: 'TIME', example: 'how long ago, such as 1h or 30m,', fault: checkDuration },
  failed: createFlagForm(),
  'kubelet-dir': createDirectoryForm(checkAbsolutePath, 'a path, such as /var/lib/kubelet,'),
  'driver-name': { type: 'string', value: 'NAME', example: 'a name, such as modekeep.csi,', fault: checkDriverName },
  socket: {
    type: 'string',
    value: 'PATH',
    example: 'a path, such as /var/run/nri/nri.sock,',
    fault: checkAbsolutePath,
  },
  'cri-socket': {
    type: 'string',
    value: 'PATH',
    example: 'a path, such as /run/containerd/containerd.sock,',
    fault: checkAbsolutePath,
  },
  'plugin-index': { type: 'string', value: 'NN', example: 'two digits, such as 10,', fault: checkPluginIndex },
  'node-id': { type: 'string', value: 'NAME', example: 'the name of the node', fault: checkNodeName },
  'api-server': {
    type: 'string',
    value: 'HOST:PORT',
    example: 'where it is, such as 10.96.0.1:443,',
    fault: checkServerAddress,
  },
  'api-access': createDirectoryForm(checkAbsolutePath, "the directory of a service account's token and ca.crt"),
  probe: createFlagForm(),
  follow: createFlagForm('f'),
  lines: { type: 'string', short: 'n', value: 'N', example: 'a number, such as 20,', fault: checkLineCount },
  pod: { type: 'string', value: 'POD', example: "a pod's UID, or NAMESPACE/NAME,", fault: checkPodReference },
  forget: {
    type: 'string',
    value: 'VOLUME',
    example: 'a volume as "modekeep status" names it',
    fault: checkVolumePrefix,
  },
  devices: { type: 'string', value: 'N', example: 'a number, such as 50,', fault: checkDeviceCount },
  prometheus: createFlagForm(),
  output: createFileForm(checkNonEmptyPath, 'a path, such as /var/lib/node_exporter/modekeep.prom,'),
  at: createDirectoryForm(checkNonEmptyPath),
  binary: createFileForm(checkNonEmptyPath),
  sha256: { type: 'string', value: 'SUM', example: '64 hexadecimal digits', fault: checkSha256 },
  'plugin-dir': createDirectoryForm(checkPluginDirectory, 'a path, such as /var/lib/kubelet/volumeplugins,'),
  config: createFileForm(checkNonEmptyPath),
  purge: createFlagForm(),
  root: createDirectoryForm(checkNonEmptyPath),
  'node-root': createDirectoryForm(checkNonEmptyPath),
  'any-kubelet': createFlagForm(),
  proc: createDirectoryForm(checkNonEmptyPath),
  man: createFlagForm(),
  offer: { type: 'string', value: 'namespaces|pods|mounts|volumes|codes' },
  json: createFlagForm(),
  help: createFlagForm('h'),
} as const satisfies Readonly<Record<string, OptionForm>>

export type OptionName = keyof typeof OPTION_FORMS

export const CLI_OPTIONS: Readonly<Record<OptionName, OptionForm>> = OPTION_FORMS

const DURATION_UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }

/** @param text such as `1h30m`: days, hours, minutes and seconds, in this order @returns milliseconds, undefined for none */
export function parseDuration(text: string): number | undefined {
  if (!/^(?=\d)(\d{1,6}d)?(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?$/.test(text)) return undefined
  const parts = text.matchAll(/(\d+)([dhms])/g)
  return [...parts].reduce((total, [, count, unit = 's']) => total + Number(count) * (DURATION_UNIT_MS[unit] ?? 0), 0)
}

/** Lists the spellings of an option: `-f` and `--follow`. */
export function listOptionSpellings(name: OptionName): string[] {
  const { short } = CLI_OPTIONS[name]
  return [...(short ? [`-${short}`] : []), `--${name}`]
}

/** Parses the words to choose from in the notation of the help. Placeholders, in capitals, are omitted. */
export function parseOptionChoices(operand = ''): string[] {
  return operand.split(/[| ]/).filter((word) => word !== word.toUpperCase())
}

/** Returns the faults of an option's value. */
export function checkOptionValue(name: OptionName, given: string | undefined): string[] {
  const { type, value, example, fault } = CLI_OPTIONS[name]
  if (type === 'boolean') return given === undefined ? [] : [`--${name} takes no value: write it alone`]
  const choices = parseOptionChoices(value)
  const either = choices.join(' or ')
  if (given === undefined) return [`--${name} has no value: write ${either || example} after it`]
  const wrong = choices.length > 0 && !choices.includes(given) ? `use ${either}` : fault?.(given)
  return wrong === undefined ? [] : [`--${name} is ${quoteValue(given)}: ${wrong}`]
}

/** An address that a server listens at. @property address undefined: every address of this network namespace */
export interface ListenAddress {
  address: string | undefined
  port: number
}

/** The address that `heal --watch` listens at. */
export interface HealthEndpoint extends ListenAddress {
  /** Serves scrapes in addition to probes. */
  hasMetrics: boolean
}

interface HealthServerInputs {
  /** Returns why heals fail now; undefined: the last heal succeeded. */
  notReady(): string | undefined
  /** Returns metrics in Prometheus' text format; undefined: no metrics are served. */
  metrics: (() => Promise<string>) | undefined
}

/** Serves probes and scrapes over HTTP until it is disposed of. */
export type HealthServerStarter = (endpoint: ListenAddress, sources: HealthServerInputs) => Promise<Disposable>

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

/** Like `isPlainVolumeIdPrefix`, also for a word that was copied with its ellipsis. */
export function isVolumeIdPrefix(text: string): boolean {
  return isPlainVolumeIdPrefix(trimEllipsis(text))
}
